package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// Run runs a machine for the Node object with [Annotation], whenever there is one, until
// ctx ends. A machine keeps its disk for as long as its Node object is there.
func Run(ctx context.Context, o Options, logger *slog.Logger) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		node := awaitNode(ctx, client, logger)
		if node == nil {
			break
		}
		logger.Info("a machine starts", "node", node.Name)
		if err := runFor(ctx, o, client, node, logger); err != nil {
			logger.Error("a machine has ended", "node", node.Name, "error", err)
			sleep(ctx, rebootDelay)
		}
	}
	return nil
}

// runFor runs a machine until its Node object is gone, or until it ends, which is an
// error.
func runFor(ctx context.Context, o Options, client kubernetes.Interface, node *corev1.Node, logger *slog.Logger) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		awaitGone(running, client, node.UID)
	}()
	if err := advertise(ctx, client); err != nil {
		return fmt.Errorf("publish the address of the API server: %w", err)
	}
	if err := o.eraseDiskOf(node.UID); err != nil {
		return err
	}
	if err := runMachine(running, o, node.Name, logger); err != nil {
		return err
	}
	logger.Info("a machine is shut down", "node", node.Name)
	return nil
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
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// eraseDiskOf leaves the disk only if it is of the node with the uid.
func (o Options) eraseDiskOf(uid types.UID) error {
	marker := o.Dir + "/uid"
	if last, err := os.ReadFile(marker); err == nil && string(last) == string(uid) {
		return nil
	}
	if err := os.RemoveAll(o.root()); err != nil {
		return err
	}
	return os.WriteFile(marker, []byte(uid), 0o600)
}

// awaitNode returns the Node object that a machine is to be run for, or nil when ctx
// has ended.
func awaitNode(ctx context.Context, client kubernetes.Interface, logger *slog.Logger) *corev1.Node {
	for ; ctx.Err() == nil; sleep(ctx, poll) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			if ctx.Err() == nil {
				logger.Warn("look for nodes", "error", err)
			}
			continue
		}
		for _, node := range nodes.Items {
			if node.Annotations[Annotation] == "real" {
				return &node
			}
		}
	}
	return nil
}

// awaitGone returns once there is no Node object with the uid, or ctx has ended. An API
// server that does not answer says nothing of it.
func awaitGone(ctx context.Context, client kubernetes.Interface, uid types.UID) {
	for ; ctx.Err() == nil; sleep(ctx, poll) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			continue
		}
		gone := true
		for _, node := range nodes.Items {
			gone = gone && node.UID != uid
		}
		if gone {
			return
		}
	}
}

func sleep(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}
