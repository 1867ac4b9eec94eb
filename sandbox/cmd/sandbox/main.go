// Sandbox brings stacks up and down on this machine, with no cloud account.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/auto/events"
	"github.com/spf13/cobra"

	"persia/cmd/persia/status"
	"persia/sandbox"
	"persia/sandbox/toolchain"
)

func main() {
	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx, stop := signal.NotifyContext(terminated, os.Interrupt)
	defer stop()
	if err := command(&flags{terminated: terminated.Done()}).ExecuteContext(ctx); err != nil {
		if err != errInEvents {
			fmt.Fprintf(os.Stderr, "sandbox: %v\n", err)
		}
		os.Exit(1)
	}
}

// flags has the values of the flags, and how this process is asked to end.
type flags struct {
	repository, stacks, dir, toolchain, archive, stack string
	real                                               sandbox.RealNode
	terminated                                         <-chan struct{}
	// json has the engine's events on standard output, and what is for people on standard error.
	json bool
	// watch shows the status again and again.
	watch bool
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
	preview := run("preview", "Show what up would change", flags.preview)
	preview.Flags().BoolVar(&flags.json, "json", false, "print the engine's events, one JSON object a line")
	state := run("status", "Show the state of a stack", flags.status)
	state.Flags().BoolVar(&flags.watch, "watch", false, "show it every five seconds")
	root.AddCommand(
		run("up", "Bring a stack up, or up to date", flags.up), preview, trainCommand(flags), archiveCommand(flags), machineCommand(),
		background("agent", "Run real programs for the pods that need one", sandbox.RunAgent),
		background("node", "Run a machine for the Node object of a real node", sandbox.RunNode),
		run("destroy", "Delete a stack and keep its control plane running", flags.destroy),
		run("down", "Delete a stack and stop everything that up started", flags.down),
		state,
		run("kubeconfig", "Print the path of a stack's kubeconfig", flags.kubeconfig),
		run("toolchain", "Compile the programs that the sandbox runs", flags.buildToolchain),
	)
	return root
}

// run makes a command without arguments.
func run(use, short string, do func(ctx context.Context) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return do(cmd.Context())
	}}
}

// hidden makes a command that up starts, not for people.
func hidden(use, short string, do func(ctx context.Context) error) *cobra.Command {
	command := run(use, short, do)
	command.Hidden = true
	return command
}

func (f *flags) up(ctx context.Context) error {
	started := time.Now()
	s, err := f.openValid(ctx)
	if err != nil {
		return err
	}
	if err := s.Apply(ctx); err != nil {
		return err
	}
	if err := s.Status(ctx, os.Stdout); err != nil {
		return err
	}
	fmt.Printf("\nup after %s\n", time.Since(started).Round(time.Second))
	return nil
}

func (f *flags) preview(ctx context.Context) error {
	s, err := f.open(ctx)
	if err != nil {
		return err
	}
	if !f.json {
		_, err = s.Preview(ctx)
		return err
	}
	stream, printed := make(chan events.EngineEvent), make(chan error, 1)
	go func() { printed <- printEvents(stream) }()
	err = s.PreviewEvents(ctx, stream)
	if saysWhy := <-printed; saysWhy != nil {
		return saysWhy
	}
	return err
}

// errInEvents ends a command that has printed why as an event.
var errInEvents = errors.New("the events say why")

func printEvents(stream <-chan events.EngineEvent) (err error) {
	encoder := json.NewEncoder(os.Stdout)
	for e := range stream {
		if err == nil || err == errInEvents {
			err = cmp.Or(errors.Join(e.Error, encoder.Encode(e.EngineEvent)), err)
		}
		if err == nil && e.DiagnosticEvent != nil && e.DiagnosticEvent.Severity == "error" {
			err = errInEvents
		}
	}
	return err
}

func (f *flags) destroy(ctx context.Context) error {
	s, err := f.open(ctx)
	if err != nil {
		return err
	}
	return s.Destroy(ctx)
}

func (f *flags) down(ctx context.Context) error {
	s, err := f.open(ctx)
	if err != nil {
		return err
	}
	if err := s.Down(ctx); err != nil {
		return err
	}
	fmt.Printf("\n%s is down: all of its processes have stopped, and its folder is removed\n", f.stack)
	return nil
}

func (f *flags) status(ctx context.Context) error {
	s, err := f.find()
	if err != nil {
		return err
	}
	show := func(out io.Writer) error { return s.Status(ctx, out) }
	if f.watch {
		status.Watch(ctx, os.Stdout, show)
		return nil
	}
	return show(os.Stdout)
}

func (f *flags) kubeconfig(context.Context) error {
	s, err := f.find()
	if err != nil {
		return err
	}
	if _, err := os.Stat(s.Kubeconfig()); err != nil {
		return fmt.Errorf("%w: start it with `make up %s`", sandbox.ErrNotRunning, s.Variables())
	}
	fmt.Println(s.Kubeconfig())
	return nil
}

func archiveCommand(flags *flags) *cobra.Command {
	var output string
	archive := run("archive", "Compile the programs that the sandbox runs into an archive, and record its checksums", func(ctx context.Context) error {
		return toolchain.WriteArchive(ctx, flags.modules(), filepath.Join(flags.dir, "archived"), output, os.Stdout)
	})
	archive.Flags().StringVar(&output, "output", filepath.Join("dist", "persia-toolchain.tar.gz"), "file of the archive")
	return archive
}

// background makes a command that runs between the commands for people, with its options as JSON.
func background(use, short string, do func(ctx context.Context, options string) error) *cobra.Command {
	var options string
	command := hidden(use, short, func(ctx context.Context) error { return do(ctx, options) })
	command.Flags().StringVar(&options, "options", "", "the options, as JSON")
	return command
}

func machineCommand() *cobra.Command {
	var dir string
	machine := hidden("machine", "Run as the first process of a machine", func(context.Context) error { return sandbox.BootMachine(dir) })
	machine.Flags().StringVar(&dir, "dir", "", "folder of the node on the host")
	return machine
}

// openValid is [flags.open] for a stack whose file is valid, which it says before anything is compiled.
func (f *flags) openValid(ctx context.Context) (*sandbox.Sandbox, error) {
	s, err := f.find()
	if err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return f.open(ctx)
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
	if sandbox.Official() {
		more = append(more, toolchain.OfOfficial)
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
	return sandbox.New(sandbox.Options{
		Project:    f.repository,
		Stacks:     f.stacks,
		Stack:      f.stack,
		Dir:        f.dir,
		Tools:      tools,
		Executable: executable,
		Real:       f.real,
		Out:        f.out(),

		Terminated: f.terminated,
	})
}

// out is for people: it has progress.
func (f *flags) out() *os.File {
	if f.json {
		return os.Stderr
	}
	return os.Stdout
}

func (f *flags) tools() (toolchain.Tools, error) {
	bin, err := filepath.Abs(f.bin())
	return toolchain.Tools(bin), err
}

func (f *flags) buildToolchain(ctx context.Context) error {
	if f.archive != "" {
		if err := toolchain.Take(ctx, f.archive, f.modules(), f.bin(), f.out()); err != nil {
			return err
		}
	}
	return f.build(ctx, toolchain.OfStacks)
}

// build compiles the programs of groups.
func (f *flags) build(ctx context.Context, groups ...toolchain.Group) error {
	_, err := toolchain.Build(ctx, f.modules(), f.bin(), f.out(), groups...)
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
