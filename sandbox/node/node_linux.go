package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"persia/sandbox/controlplane"
)

const (
	// poll is how often the Node objects are looked at.
	poll = 500 * time.Millisecond
	// rebootDelay is the time between the end of a machine and its next start.
	rebootDelay = 3 * time.Second
)

// Run runs a machine for the Node object with [Annotation], until ctx ends. The machine keeps its
// disk for as long as its Node object is there. While an upgrade replaces a node, there may be two: the
// second waits until the first is gone.
func Run(ctx context.Context, o Options, logger *slog.Logger) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	runner{o, client, logger}.run(ctx)
	return nil
}

// runner runs the machine of a sandbox.
type runner struct {
	options Options
	client  kubernetes.Interface
	logger  *slog.Logger
}

func (r runner) run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if nodes, ok := r.realNodes(ctx); ok && len(nodes) > 0 {
			r.runFor(ctx, nodes[0])
		}
	}, poll)
}

// realNodes returns the Node objects that a machine is to be run for. It is not ok if the API server does
// not answer, which says nothing about a node.
func (r runner) realNodes(ctx context.Context) (nodes []corev1.Node, ok bool) {
	list, err := r.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		if ctx.Err() == nil {
			r.logger.Warn("look for nodes", "error", err)
		}
		return nil, false
	}
	for _, node := range list.Items {
		if node.Annotations[Annotation] == "real" {
			nodes = append(nodes, node)
		}
	}
	return nodes, true
}

// runFor keeps a machine running for a node until that is gone, or ctx ends. The disk goes with the node.
func (r runner) runFor(ctx context.Context, node corev1.Node) {
	m := machine{r.options, node.Name}
	m.Dir = filepath.Join(r.options.Dir, string(node.UID))
	logger := r.logger.With("node", m.node)
	running, stop := context.WithCancel(ctx)
	go wait.UntilWithContext(running, func(running context.Context) {
		nodes, ok := r.realNodes(running)
		if ok && !slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.UID == node.UID }) {
			stop()
		}
	}, poll)
	wait.UntilWithContext(running, func(running context.Context) {
		logger.Info("a machine starts")
		if err := r.boot(running, m); running.Err() == nil {
			logger.Error("a machine has ended", "error", err)
		}
	}, rebootDelay)
	logger.Info("a machine is shut down")
	if ctx.Err() != nil {
		return
	}
	if err := os.RemoveAll(m.Dir); err != nil {
		logger.Error("remove the disk of a machine", "error", err)
	}
}

// boot runs a machine until ctx ends, or until the machine ends, which is an error.
func (r runner) boot(ctx context.Context, m machine) error {
	if err := advertise(ctx, r.client); err != nil {
		return fmt.Errorf("publish the address of the API server: %w", err)
	}
	return m.run(ctx, r.logger)
}

// advertise publishes, once, the address from which machines relay to the API server. It
// becomes the endpoint of the Service kubernetes.
func advertise(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "kubernetes",
			Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{controlplane.AdvertisedAddress}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(controlplane.AdvertisedPort))}},
	}, metav1.CreateOptions{})
	return utilerrors.FilterOut(err, apierrors.IsAlreadyExists)
}
