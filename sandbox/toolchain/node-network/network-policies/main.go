// Network-policies enforces the NetworkPolicies of a cluster on the pods of one node,
// by kube-router's controller for them. Kube-router's own program brings its routing
// and its service proxy along, which this node does not use.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cloudnativelabs/kube-router/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/pkg/options"
	"github.com/spf13/pflag"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config := options.NewKubeRouterConfig()
	config.AddFlags(pflag.CommandLine)
	pflag.Parse()
	if err := run(ctx, config); err != nil {
		fmt.Fprintf(os.Stderr, "network-policies: %v\n", err)
		os.Exit(1)
	}
}

// run enforces the policies until ctx ends.
func run(ctx context.Context, config *options.KubeRouterConfig) error {
	access, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	controller, err := netpol.NewNetworkPolicyController(client, config, pods, policies, namespaces, &sync.Mutex{})
	if err != nil {
		return err
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods:       controller.PodEventHandler,
		namespaces: controller.NamespaceEventHandler,
		policies:   controller.NetworkPolicyEventHandler,
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	// Nobody asks for its heartbeats, and it would wait for a reader.
	heartbeats := make(chan *healthcheck.ControllerHeartbeat)
	go func() {
		for range heartbeats {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	controller.Run(heartbeats, ctx.Done(), &running)
	return nil
}
