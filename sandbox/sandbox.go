// Package sandbox brings a stack up on this machine with no cloud account: the unchanged program, run by the real
// Pulumi engine, against a real Kubernetes control plane with simulated nodes and a simulated Google Cloud.
//
// Each stack has its own control plane. The sandbox writes only to one folder, and listens only on loopback.
package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/auto/events"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optpreview"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optrefresh"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optup"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"persia/config/input"
	"persia/sandbox/agent"
	"persia/sandbox/controlplane"
	"persia/sandbox/files"
	"persia/sandbox/gcp/autoscaler"
	"persia/sandbox/gcp/gke"
	"persia/sandbox/gcp/google"
	"persia/sandbox/process"
	"persia/sandbox/toolchain"
	"persia/stack/effects"
)

// parallel is how many resources the engine works on at once. Most of them wait for pods.
const parallel = 64

// Options describe the stack of a sandbox, and its folders and programs.
type Options struct {
	// Project is the folder of Pulumi.yaml.
	Project string
	// Stacks is the folder of the stack file and the files that it names. Default: Project.
	Stacks string
	// Stack is the stack's name, as in Pulumi.prod.yaml.
	Stack string
	// Dir is the folder that the sandboxes of all stacks write to.
	Dir string
	// Tools is the toolchain, built.
	Tools toolchain.Tools
	// Executable is the sandbox command, which runs [RunAgent] when its first argument is
	// "agent", [RunNode] when it is "node", and [BootMachine] when it is "machine".
	Executable string
	// Real describes the real node. Without a pool, it is the one of the last up.
	Real RealNode
	// Unprotected brings the cluster up without its protection from deletion.
	Unprotected bool
	// Announce learns what each preview and update does to what runs. It may be nil.
	Announce func([]effects.Effect)
	// Terminated, once it is closed, interrupts the Pulumi CLI. It may be nil.
	Terminated <-chan struct{}
	// Out shows progress.
	Out io.Writer
}

// Sandbox is the sandbox of one stack.
type Sandbox struct {
	folder
	options Options
	cluster *controlplane.Cluster
}

// New returns the sandbox of a stack, whether or not it runs.
func New(options Options) (*Sandbox, error) {
	options.Stacks = cmp.Or(options.Stacks, options.Project)
	err := files.Absolute(&options.Project, &options.Stacks, &options.Dir, (*string)(&options.Tools), &options.Executable)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(options.Stacks, input.StackFileName(options.Stack))); err != nil {
		found := input.StackNames(os.DirFS(options.Stacks))
		if _, err := os.Stat(filepath.Join(options.Project, "examples", "Pulumi."+options.Stack+".yaml")); err == nil {
			found += ", and this one of the examples: write STACKS=examples"
		}
		return nil, fmt.Errorf("there is no stack %q: %w; %s", options.Stack, err, found)
	}
	s := &Sandbox{folder: folder{options.Dir, options.Stack}}
	if slices.Contains(reserved, options.Stack) {
		return nil, fmt.Errorf("stack %q: the sandbox keeps files of its own in %s, where it would keep those of the stack; "+
			"rename the stack", options.Stack, s.path())
	}
	s.cluster = controlplane.New(s.path("cluster"), "persia-"+options.Stack, options.Tools)
	options.Real, err = findRealNode(options.Real, s.folder)
	s.options = options
	return s, err
}

// Kubeconfig returns the path of an administrator's kubeconfig.
func (s *Sandbox) Kubeconfig() string { return s.cluster.Kubeconfig() }

// Groups returns the programs that this stack needs in addition to [toolchain.OfStacks].
func (s *Sandbox) Groups() []toolchain.Group {
	groups := toolchain.Chosen()
	cfg, err := s.Config()
	if err == nil && cfg.InstallsJobSet() {
		groups = append(groups, toolchain.OfJobSets)
	}
	if err == nil && cfg.InstallsKueue() {
		groups = append(groups, toolchain.OfQueues)
	}
	if s.options.Real.Pool != "" {
		groups = append(groups, toolchain.OfPods, toolchain.OfNode)
	}
	return groups
}

// Cluster returns the control plane.
func (s *Sandbox) Cluster() *controlplane.Cluster { return s.cluster }

// Up starts the control plane and the agent unless they run, and creates or updates the
// stack. It returns how many resources had which operation.
func (s *Sandbox) Up(ctx context.Context) (changes map[string]int, err error) {
	if err := s.Update(ctx, nil); err != nil {
		return nil, err
	}
	last, err := s.State().last()
	return last.ResourceChanges, err
}

// Update is [Sandbox.Up], and shows the engine's events, unless show is nil.
func (s *Sandbox) Update(ctx context.Context, show func(events.EngineEvent)) error {
	return s.locked(ctx, func() error {
		if err := s.start(ctx); err != nil {
			return err
		}
		err := s.run(ctx, "up", func(ctx context.Context, engine *engine) error {
			if err := engine.recover(ctx); err != nil {
				return err
			}
			options := []optup.Option{optup.Parallel(parallel), optup.SuppressOutputs(),
				optup.ProgressStreams(engine.out), optup.ErrorProgressStreams(engine.out)}
			if show == nil {
				_, err := engine.stack.Up(ctx, options...)
				return err
			}
			return watch(show, func(stream chan<- events.EngineEvent) error {
				_, err := engine.stack.Up(ctx, append(options, optup.EventStreams(stream))...)
				return err
			})
		})
		if err != nil {
			s.printEnded(s.options.Out) // it may be why
		}
		return err
	})
}

// Preview shows the engine's events of what Up would do. It starts no control plane.
func (s *Sandbox) Preview(ctx context.Context, show func(events.EngineEvent)) error {
	return s.alone(ctx, "preview", func(ctx context.Context, engine *engine) error {
		return watch(show, func(stream chan<- events.EngineEvent) error {
			_, err := engine.stack.Preview(ctx, optpreview.Parallel(parallel), optpreview.EventStreams(stream),
				optpreview.ErrorProgressStreams(s.options.Out))
			return err
		})
	})
}

// watch shows the events of an operation until it has ended. The CLI may end before it sends events, and the stream then
// stays open.
func watch(show func(events.EngineEvent), do func(chan<- events.EngineEvent) error) error {
	stream, ended := make(chan events.EngineEvent), make(chan error, 1)
	go func() { ended <- do(stream) }()
	for {
		select {
		case event, open := <-stream:
			if open {
				show(event)
			} else {
				stream = nil
			}
		case err := <-ended:
			return err
		}
	}
}

// Refresh updates the stack's state from its resources. It returns what had drifted.
func (s *Sandbox) Refresh(ctx context.Context) (changes map[string]int, err error) {
	err = s.alone(ctx, "refresh", func(ctx context.Context, engine *engine) error {
		_, err := engine.stack.Refresh(ctx, optrefresh.Parallel(parallel),
			optrefresh.ProgressStreams(s.options.Out), optrefresh.ErrorProgressStreams(s.options.Out))
		return err
	})
	if err != nil {
		return nil, err
	}
	last, err := s.State().last()
	return last.ResourceChanges, err
}

// Destroy deletes the stack's resources and leaves the control plane running.
func (s *Sandbox) Destroy(ctx context.Context) error {
	return s.locked(ctx, func() error { return s.destroy(ctx, false) })
}

// alone runs an operation while no other command is at work on the stack.
func (s *Sandbox) alone(ctx context.Context, operation string, do func(context.Context, *engine) error) error {
	return s.locked(ctx, func() error { return s.run(ctx, operation, do) })
}

func (f folder) agent() process.Background { return process.Background(f.path("agent")) }

// start starts the control plane, the agent and a real node, if they do not run.
func (s *Sandbox) start(ctx context.Context) error {
	if err := s.cluster.Start(ctx, s.options.Out); err != nil {
		return err
	}
	if err := s.startAgent(ctx); err != nil {
		return err
	}
	if err := s.options.Real.start(ctx, s); err != nil {
		return err
	}
	// On a busy machine, a component that has waited too long for the API server gives up shortly after the start.
	return s.cluster.Start(ctx, s.options.Out)
}

func (s *Sandbox) startAgent(ctx context.Context) error {
	machines, err := s.options.machines()
	if err != nil {
		return err
	}
	text, err := json.Marshal(agentOptions{
		Options:    agent.Options{Dir: s.path("agent"), Tools: s.options.Tools, Proxy: s.cluster.Proxy()},
		Kubeconfig: s.Kubeconfig(), Storage: s.storage(), Machines: machines, RealPool: s.options.Real.Pool,
	})
	if err != nil {
		return err
	}
	return s.agent().Start(ctx, process.Program{Executable: s.options.Executable, Args: []string{"agent", "--options", string(text)}})
}

// locked does something while no other command is at work on the stack.
func (s *Sandbox) locked(ctx context.Context, do func() error) error {
	if err := os.MkdirAll(s.path(), 0o700); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	unlock, err := process.Lock(waiting, s.path("lock"))
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("another sandbox command is at work on the stack %s: wait for it or interrupt it", s.options.Stack)
	}
	if err != nil {
		return err
	}
	defer unlock()
	return do()
}

// agentOptions are what the agent runs for, and where.
type agentOptions struct {
	agent.Options
	Kubeconfig, Storage string
	Machines            gke.Machines
	RealPool            string
}

// RunAgent runs the services that a sandbox needs between its commands, until ctx ends: local
// processes for pods that are not only simulated, Google Cloud's autoscaler and load balancers, and the
// repair of node pools. Its options are JSON.
func RunAgent(ctx context.Context, text string) error {
	var options agentOptions
	if err := json.Unmarshal([]byte(text), &options); err != nil {
		return fmt.Errorf("options of the agent: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", options.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // the API server is on this machine and protects itself
	// The Pulumi SDK silences the default logger.
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	options.Config, options.Logger = config, logger
	engine, err := gke.New(google.New(options.Storage), config, options.Machines, options.RealPool)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return autoscaler.Run(ctx, engine, logger) })
	group.Go(func() error { return engine.Repair(ctx, logger) })
	group.Go(func() error { return gke.GiveAddresses(ctx, config, logger) })
	group.Go(func() error { return agent.Run(ctx, options.Options) })
	return group.Wait()
}
