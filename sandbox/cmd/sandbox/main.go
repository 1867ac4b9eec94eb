// Sandbox brings stacks up and down on this machine, with no cloud account.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/auto/events"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optpreview"
	"github.com/spf13/cobra"

	"persia/sandbox"
	"persia/sandbox/toolchain"
)

func main() {
	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx, stop := signal.NotifyContext(terminated, os.Interrupt)
	defer stop()
	if err := command(&flags{terminated: terminated.Done()}).ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "sandbox: %v\n", err)
		os.Exit(1)
	}
}

// officialKubernetes is the environment variable that, set to "official", makes the engine
// start the official Kubernetes provider.
const officialKubernetes = "SANDBOX_KUBERNETES_PROVIDER"

// flags has the values of the flags, and how this process is asked to end.
type flags struct {
	repository, stacks, dir, toolchain, archive, stack string
	real                                               sandbox.RealNode
	terminated                                         <-chan struct{}
	// json has the engine's events on standard output, and what is for people on standard error.
	json bool
}

func command(flags *flags) *cobra.Command {
	root := &cobra.Command{
		Use:           "sandbox",
		Short:         "Bring stacks up on this machine, with no cloud account",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	persistent := root.PersistentFlags()
	persistent.StringVar(&flags.repository, "repository", ".", "folder of Pulumi.yaml")
	persistent.StringVar(&flags.stacks, "stacks", "", "folder of the stack files, and of the files that they name (default REPOSITORY)")
	persistent.StringVar(&flags.dir, "dir", ".sandbox", "folder that the sandbox writes to")
	persistent.StringVar(&flags.toolchain, "toolchain", "", "folder of the compiled programs, called bin (default DIR/bin)")
	persistent.StringVar(&flags.archive, "archive", "", "file or URL of an archive with compiled programs")
	persistent.StringVar(&flags.stack, "stack", "dev", "stack, as in Pulumi.STACK.yaml")
	root.AddCommand(
		upCommand(flags),
		trainCommand(flags),
		previewCommand(flags),
		destroyCommand(flags),
		downCommand(flags),
		statusCommand(flags),
		kubeconfigCommand(flags),
		toolchainCommand(flags),
		archiveCommand(flags),
		agentCommand(),
		nodeCommand(),
		machineCommand(),
	)
	return root
}

func upCommand(flags *flags) *cobra.Command {
	up := &cobra.Command{
		Use:   "up",
		Short: "Bring a stack up, or up to date",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			started := time.Now()
			s, err := flags.open(cmd.Context())
			if err != nil {
				return err
			}
			if err := s.Apply(cmd.Context()); err != nil {
				return err
			}
			if err := s.Status(cmd.Context(), os.Stdout); err != nil {
				return err
			}
			fmt.Printf("\nup after %s\n", time.Since(started).Round(time.Second))
			return nil
		},
	}
	flags.addReal(up)
	return up
}

// addReal adds the flags of a real node.
func (f *flags) addReal(command *cobra.Command) {
	command.Flags().StringVar(&f.real.Pool, "real-node", "", "node pool whose pods run in real containers (default: as in the last up)")
	command.Flags().StringVar(&f.real.Images, "images", "", "folder with the images of those pods, as *.tar archives")
}

func previewCommand(flags *flags) *cobra.Command {
	command := &cobra.Command{
		Use:   "preview",
		Short: "Show what up would change",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := flags.open(cmd.Context())
			if err != nil {
				return err
			}
			if !flags.json {
				_, err = s.Preview(cmd.Context())
				return err
			}
			stream, printed := make(chan events.EngineEvent), make(chan error, 1)
			go func() { printed <- printEvents(stream) }()
			_, err = s.Preview(cmd.Context(), optpreview.EventStreams(stream))
			return errors.Join(err, <-printed)
		},
	}
	command.Flags().BoolVar(&flags.json, "json", false, "print the engine's events, one JSON object a line")
	return command
}

func printEvents(stream <-chan events.EngineEvent) (err error) {
	encoder := json.NewEncoder(os.Stdout)
	for e := range stream {
		if err == nil {
			err = errors.Join(e.Error, encoder.Encode(e.EngineEvent))
		}
	}
	return err
}

func destroyCommand(flags *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "destroy",
		Short: "Delete a stack and keep its control plane running",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := flags.open(cmd.Context())
			if err != nil {
				return err
			}
			return s.Destroy(cmd.Context())
		},
	}
}

func downCommand(flags *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Delete a stack and stop everything that up started",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := flags.open(cmd.Context())
			if err != nil {
				return err
			}
			if err := s.Down(cmd.Context()); err != nil {
				return err
			}
			fmt.Printf("\n%s is down: all of its processes have stopped, and its folder is removed\n", flags.stack)
			return nil
		},
	}
}

func statusCommand(flags *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the state of a stack",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := flags.find()
			if err != nil {
				return err
			}
			return s.Status(cmd.Context(), os.Stdout)
		},
	}
}

func kubeconfigCommand(flags *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of a stack's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := flags.find()
			if err != nil {
				return err
			}
			if _, err := os.Stat(s.Kubeconfig()); err != nil {
				return fmt.Errorf("%w: start it with `make up %s`", sandbox.ErrNotRunning, s.Variables())
			}
			fmt.Println(s.Kubeconfig())
			return nil
		},
	}
}

func toolchainCommand(flags *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "toolchain",
		Short: "Compile the programs that the sandbox runs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.buildToolchain(cmd.Context())
		},
	}
}

func archiveCommand(flags *flags) *cobra.Command {
	var output string
	archive := &cobra.Command{
		Use:   "archive",
		Short: "Compile the programs that the sandbox runs into an archive, and record its checksums",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return toolchain.WriteArchive(cmd.Context(), flags.modules(), filepath.Join(flags.dir, "archived"), output, os.Stdout)
		},
	}
	archive.Flags().StringVar(&output, "output", filepath.Join("dist", "persia-toolchain.tar.gz"), "file of the archive")
	return archive
}

// agentCommand returns a hidden command, which up starts in the background.
func agentCommand() *cobra.Command {
	var options sandbox.AgentOptions
	agent := &cobra.Command{
		Use:    "agent",
		Short:  "Run real programs for the pods that need one",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sandbox.RunAgent(cmd.Context(), options)
		},
	}
	agent.Flags().StringVar(&options.Dir, "dir", "", "folder that the agent writes to")
	agent.Flags().StringVar(&options.Kubeconfig, "kubeconfig", "", "administrator's kubeconfig")
	agent.Flags().StringVar(&options.NATSOperator, "nats-operator", "", "the NATS operator's executable")
	agent.Flags().StringVar(&options.JobSet, "jobset", "", "the JobSet controller's executable")
	agent.Flags().StringVar(&options.Kueue, "kueue", "", "Kueue's executable")
	agent.Flags().StringVar(&options.Proxy, "proxy", "", "socket on which the API server asks for connections to pods")
	agent.Flags().StringVar(&options.NodeTunnel, "node-tunnel", "", "socket at which the real node connects to its pods")
	return agent
}

// nodeCommand returns a hidden command, which up starts in the background for a real node.
func nodeCommand() *cobra.Command {
	var options string
	command := &cobra.Command{
		Use:    "node",
		Short:  "Run a machine for the Node object of a real node",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sandbox.RunNode(cmd.Context(), options)
		},
	}
	command.Flags().StringVar(&options, "options", "", "file of the node's options")
	return command
}

// machineCommand returns the first process of a real node's machine, not for people.
func machineCommand() *cobra.Command {
	var dir string
	machine := &cobra.Command{
		Use:    "machine",
		Short:  "Run as the first process of a machine",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			return sandbox.BootMachine(dir)
		},
	}
	machine.Flags().StringVar(&dir, "dir", "", "folder of the node on the host")
	return machine
}

// open returns the stack's sandbox with its toolchain built.
func (f *flags) open(ctx context.Context) (*sandbox.Sandbox, error) {
	s, err := f.find()
	if err != nil {
		return nil, err
	}
	if err := f.buildToolchain(ctx); err != nil {
		return s, err
	}
	var more []toolchain.Group
	if s.InstallsJobSet() {
		more = append(more, toolchain.OfJobSets)
	}
	if s.InstallsKueue() {
		more = append(more, toolchain.OfQueues)
	}
	if s.HasRealNode() {
		more = append(more, toolchain.OfPods, toolchain.OfNode)
	}
	return s, f.build(ctx, more...)
}

// find returns the stack's sandbox.
func (f *flags) find() (*sandbox.Sandbox, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	tools, err := f.tools()
	if err != nil {
		return nil, err
	}
	out := os.Stdout
	if f.json {
		out = os.Stderr
	}
	return sandbox.New(sandbox.Options{
		Project:    f.repository,
		Stacks:     f.stacks,
		Stack:      f.stack,
		Dir:        f.dir,
		Tools:      tools,
		Executable: executable,
		Real:       f.real,
		Out:        out,

		OfficialKubernetes: os.Getenv(officialKubernetes) == "official",
		Terminated:         f.terminated,
	})
}

func (f *flags) tools() (toolchain.Tools, error) {
	bin, err := filepath.Abs(f.bin())
	return toolchain.In(bin), err
}

func (f *flags) buildToolchain(ctx context.Context) error {
	if f.archive != "" {
		if err := toolchain.Take(ctx, f.archive, f.modules(), f.bin(), os.Stdout); err != nil {
			return err
		}
	}
	return f.build(ctx, toolchain.OfStacks)
}

// build compiles the programs of groups.
func (f *flags) build(ctx context.Context, groups ...toolchain.Group) error {
	_, err := toolchain.Build(ctx, f.modules(), f.bin(), os.Stdout, groups...)
	return err
}

// modules returns the folder of the modules that the toolchain is compiled from.
func (f *flags) modules() string { return filepath.Join(f.repository, "sandbox", "toolchain") }

// bin returns the folder of the compiled programs.
func (f *flags) bin() string {
	if f.toolchain != "" {
		return f.toolchain
	}
	return filepath.Join(f.dir, "bin")
}
