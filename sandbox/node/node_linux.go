package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"persia/sandbox/controlplane"
	"persia/sandbox/tunnel"
)

const (
	// poll is how often the Node objects are looked at.
	poll = 500 * time.Millisecond
	// rebootDelay is the time between the end of a machine and its next start.
	rebootDelay = 3 * time.Second
)

// Run runs a machine for each Node object with [Annotation], until ctx ends. A machine keeps its
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
	joined := &network{}
	closeTunnel, err := tunnel.Serve(Tunnel(o.Dir), joined.dial)
	if err != nil {
		return fmt.Errorf("connect to the pods of real nodes: %w", err)
	}
	defer closeTunnel()
	r := runner{options: o, client: client, logger: logger, network: joined, machines: map[types.UID]*runningMachine{}}
	r.run(ctx)
	return nil
}

// run runs machines until ctx ends.
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
	r.shutDown(func(types.UID) bool { return true })
}

// runner runs the machines of a sandbox.
type runner struct {
	options  Options
	client   kubernetes.Interface
	logger   *slog.Logger
	network  *network
	machines map[types.UID]*runningMachine
}

// runningMachine is a machine that is kept running.
type runningMachine struct {
	machine
	stop  context.CancelFunc
	ended chan struct{}
}

// realNodes returns the Node objects that machines are to be run for, by their UIDs.
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

// match shuts down the machines whose nodes are gone, and starts machines for new nodes.
func (r *runner) match(ctx context.Context, nodes map[types.UID]string) {
	for _, gone := range r.shutDown(func(uid types.UID) bool { return nodes[uid] == "" }) {
		if err := os.RemoveAll(gone.Dir); err != nil {
			r.logger.Error("remove the disk of a machine", "node", gone.node, "error", err)
		}
	}
	for uid, name := range nodes {
		if r.machines[uid] == nil {
			r.start(ctx, uid, name)
		}
	}
}

// shutDown shuts down the chosen machines, all at the same time, and returns them.
func (r *runner) shutDown(chosen func(types.UID) bool) []machine {
	var all []machine
	for uid, running := range r.machines {
		if chosen(uid) {
			running.stop()
		}
	}
	for uid, running := range r.machines {
		if chosen(uid) {
			<-running.ended
			r.logger.Info("a machine is shut down", "node", running.node)
			delete(r.machines, uid)
			all = append(all, running.machine)
		}
	}
	return all
}

// start keeps a machine running for the node with a UID and a name.
func (r *runner) start(ctx context.Context, uid types.UID, name string) {
	number := r.freeNumber()
	if number == maxMachines {
		r.logger.Error("too many real nodes", "node", name, "most", maxMachines)
		return
	}
	options := r.options
	options.Dir = machineDir(options.Dir, name)
	running, stop := context.WithCancel(ctx)
	started := &runningMachine{machine{options, name, number}, stop, make(chan struct{})}
	r.machines[uid] = started
	go func() {
		defer close(started.ended)
		r.keep(running, uid, started.machine)
	}()
}

// freeNumber returns the lowest number that no machine has.
func (r *runner) freeNumber() int {
	taken := map[int]bool{}
	for _, running := range r.machines {
		taken[running.number] = true
	}
	number := 0
	for taken[number] {
		number++
	}
	return number
}

// keep starts a machine again whenever it ends, unless it is switched off, until ctx ends.
func (r *runner) keep(ctx context.Context, uid types.UID, m machine) {
	logger := r.logger.With("node", m.node)
	for ctx.Err() == nil {
		on, stop := whileOn(ctx, filepath.Join(m.Dir, offFile))
		logger.Info("a machine starts")
		err := r.boot(on, uid, m)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			logger.Error("a machine has ended", "error", err)
			sleep(ctx, rebootDelay)
		default:
			logger.Warn("a machine is switched off")
		}
		stop()
	}
}

// boot runs a machine until ctx ends, or until the machine ends, which is an error.
func (r *runner) boot(ctx context.Context, uid types.UID, m machine) error {
	if err := advertise(ctx, r.client); err != nil {
		return fmt.Errorf("publish the address of the API server: %w", err)
	}
	if err := m.eraseDiskOf(uid); err != nil {
		return err
	}
	return m.run(ctx, r.network, r.logger)
}

// whileOn waits until a file does not exist, and returns a context that ends when it exists again.
func whileOn(ctx context.Context, off string) (context.Context, context.CancelFunc) {
	isOff := func() bool {
		_, err := os.Stat(off)
		return err == nil
	}
	for isOff() && ctx.Err() == nil {
		sleep(ctx, poll)
	}
	on, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		for on.Err() == nil && !isOff() {
			sleep(on, poll)
		}
	}()
	return on, stop
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
