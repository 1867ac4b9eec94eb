package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

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

// Run runs a machine for the Node object with [Annotation], until ctx ends. The machine keeps its
// disk for as long as its Node object is there.
func Run(ctx context.Context, o Options, logger *slog.Logger) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	r := runner{options: o, client: client, logger: logger}
	closeTunnel, err := ServeTunnel(Tunnel(o.Dir), r.dial)
	if err != nil {
		return fmt.Errorf("connect to the pods of the real node: %w", err)
	}
	defer closeTunnel()
	r.run(ctx)
	return nil
}

// runner runs the machine of a sandbox.
type runner struct {
	options Options
	client  kubernetes.Interface
	logger  *slog.Logger
	// running is the machine that is kept running, or nil.
	running *runningMachine
	// pid is the first process of the machine while it has a network, or 0.
	pid atomic.Int64
}

// runningMachine is a machine that is kept running for the node with a UID.
type runningMachine struct {
	machine
	uid   types.UID
	stop  context.CancelFunc
	ended chan struct{}
}

// dial connects to an address of the machine or of one of its pods, from the machine's network,
// where the socket stays.
func (r *runner) dial(ctx context.Context, address string) (connection net.Conn, err error) {
	pid := int(r.pid.Load())
	if pid == 0 {
		return nil, fmt.Errorf("no real node runs that could have the address %s", address)
	}
	entered := inNetwork(pid, func() error {
		connection, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
		return nil
	})
	return connection, errors.Join(entered, err)
}

// run runs the machine until ctx ends.
func (r *runner) run(ctx context.Context) {
	for ; ctx.Err() == nil; sleep(ctx, poll) {
		// An API server that does not answer says nothing about a node.
		nodes, err := r.realNodes(ctx)
		if err == nil {
			r.match(ctx, nodes)
		} else if ctx.Err() == nil {
			r.logger.Warn("look for nodes", "error", err)
		}
	}
	r.shutDown()
}

// realNodes returns the Node objects that a machine is to be run for, by their UIDs.
func (r *runner) realNodes(ctx context.Context) (map[types.UID]string, error) {
	list, err := r.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	names := map[types.UID]string{}
	for _, node := range list.Items {
		if node.Annotations[Annotation] == "real" {
			names[node.UID] = node.Name
		}
	}
	return names, nil
}

// match shuts the machine down when its node is gone, and starts one for a node that is there. While
// an upgrade replaces a node, there may be two: the new one waits until the old one is gone.
func (r *runner) match(ctx context.Context, nodes map[types.UID]string) {
	if r.running != nil && nodes[r.running.uid] == "" {
		gone := r.running.machine
		r.shutDown()
		if err := os.RemoveAll(gone.Dir); err != nil {
			r.logger.Error("remove the disk of a machine", "node", gone.node, "error", err)
		}
	}
	for uid, name := range nodes {
		if r.running == nil {
			r.start(ctx, uid, name)
		}
	}
}

// shutDown shuts the machine down, if one runs.
func (r *runner) shutDown() {
	if r.running == nil {
		return
	}
	r.running.stop()
	<-r.running.ended
	r.logger.Info("a machine is shut down", "node", r.running.node)
	r.running = nil
}

// start keeps a machine running for the node with a UID and a name.
func (r *runner) start(ctx context.Context, uid types.UID, name string) {
	options := r.options
	options.Dir = machineDir(options.Dir, name)
	ctx, stop := context.WithCancel(ctx)
	started := &runningMachine{machine{options, name}, uid, stop, make(chan struct{})}
	r.running = started
	go func() {
		defer close(started.ended)
		r.keep(ctx, started)
	}()
}

// keep starts a machine again whenever it ends, until ctx ends.
func (r *runner) keep(ctx context.Context, m *runningMachine) {
	logger := r.logger.With("node", m.node)
	for ctx.Err() == nil {
		logger.Info("a machine starts")
		if err := r.boot(ctx, m); ctx.Err() == nil {
			logger.Error("a machine has ended", "error", err)
			sleep(ctx, rebootDelay)
		}
	}
}

// boot runs a machine until ctx ends, or until the machine ends, which is an error.
func (r *runner) boot(ctx context.Context, m *runningMachine) error {
	if err := advertise(ctx, r.client); err != nil {
		return fmt.Errorf("publish the address of the API server: %w", err)
	}
	if err := m.eraseDiskOf(m.uid); err != nil {
		return err
	}
	return m.run(ctx, r.logger, func(pid int) { r.pid.Store(int64(pid)) })
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
	marker := filepath.Join(o.Dir, "uid")
	if last, err := os.ReadFile(marker); err == nil && string(last) == string(uid) {
		return nil
	}
	if err := os.RemoveAll(o.root()); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(marker, []byte(uid), 0o600)
}

func sleep(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}
