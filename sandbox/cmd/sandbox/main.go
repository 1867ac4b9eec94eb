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

	"persia/internal/status"
	"persia/sandbox"
	"persia/sandbox/toolchain"
)

func main() {
	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx, stop := signal.NotifyContext(terminated, os.Interrupt)
	defer stop()
	if err := command(terminated.Done()).ExecuteContext(ctx); err != nil {
		if err != errInEvents {
			fmt.Fprintf(os.Stderr, "sandbox: %v\n", err)
		}
		os.Exit(1)
	}
}

// flags has the values of the flags, and how this process is asked to end.
type flags struct {
	sandbox.Options
	archive string
}

func command(terminated <-chan struct{}) *cobra.Command {
	flags := &flags{Options: sandbox.Options{Out: os.Stdout, Terminated: terminated}}
	root := &cobra.Command{
		Use:               "sandbox",
		Short:             "Bring stacks up on this machine, with no cloud account",
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return flags.complete() },
	}
	persistent := root.PersistentFlags()
	persistent.StringVar(&flags.Project, "repository", ".", "folder of Pulumi.yaml")
	persistent.StringVar(&flags.Stacks, "stacks", "", "folder of the stack files, and of the files that they name (default REPOSITORY)")
	persistent.StringVar(&flags.Dir, "dir", ".sandbox", "folder that the sandbox writes to")
	persistent.StringVar((*string)(&flags.Tools), "toolchain", "", "folder of the compiled programs, called bin (default DIR/bin)")
	persistent.StringVar(&flags.archive, "archive", "", "file or URL of an archive with compiled programs")
	persistent.StringVar(&flags.Stack, "stack", "dev", "stack, as in Pulumi.STACK.yaml")
	root.AddCommand(
		run("up", "Bring a stack up, or up to date", flags.up),
		run("preview", "Print the events of what up would change, one JSON object a line", flags.preview),
		run("down", "Delete a stack and stop everything that up started", flags.down),
		run("kubeconfig", "Print the path of a stack's kubeconfig", flags.kubeconfig),
		run("toolchain", "Compile the programs that the sandbox runs", flags.buildToolchain),
		trainCommand(flags), rehearseCommand(flags), statusCommand(flags), archiveCommand(flags),
		hidden("destroy", "Delete a stack and keep its control plane running", flags.destroy),
		background("agent", "Run real programs for the pods that need one", sandbox.RunAgent),
		background("node", "Run a machine for the Node object of a real node", sandbox.RunNode),
		background("machine", "Run as the first process of the machine in a folder", sandbox.BootMachine),
	)
	return root
}

// complete sets what no flag sets.
func (f *flags) complete() (err error) {
	f.Tools = cmp.Or(f.Tools, toolchain.Tools(filepath.Join(f.Dir, "bin")))
	f.Executable, err = os.Executable()
	return err
}

// run makes a command without arguments.
func run(use, short string, do func(ctx context.Context) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return do(cmd.Context())
	}}
}

// hidden makes a command that is not for people.
func hidden(use, short string, do func(ctx context.Context) error) *cobra.Command {
	command := run(use, short, do)
	command.Hidden = true
	return command
}

func (f *flags) up(ctx context.Context) error {
	started := time.Now()
	s, err := f.open(ctx, true)
	if err != nil {
		return err
	}
	if _, err := s.Up(ctx); err != nil {
		return err
	}
	if err := s.Status(ctx, os.Stdout); err != nil {
		return err
	}
	fmt.Printf("\nup after %s\n", time.Since(started).Round(time.Second))
	return nil
}

// errInEvents ends a command that has printed why as an event.
var errInEvents = errors.New("the events say why")

func (f *flags) preview(ctx context.Context) error {
	f.Out = os.Stderr
	s, err := f.open(ctx, false)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(os.Stdout)
	var failed error
	err = s.Preview(ctx, func(e events.EngineEvent) {
		if failed == nil || failed == errInEvents {
			failed = cmp.Or(errors.Join(e.Error, encoder.Encode(e.EngineEvent)), failed)
		}
		if failed == nil && e.DiagnosticEvent != nil && e.DiagnosticEvent.Severity == "error" {
			failed = errInEvents
		}
	})
	return cmp.Or(failed, err)
}

func (f *flags) destroy(ctx context.Context) error {
	s, err := f.open(ctx, false)
	if err != nil {
		return err
	}
	return s.Destroy(ctx)
}

func (f *flags) down(ctx context.Context) error {
	s, err := f.open(ctx, false)
	if err != nil {
		return err
	}
	if err := s.Down(ctx); err != nil {
		return err
	}
	fmt.Printf("\n%s is down: all of its processes have stopped, and its folder is removed\n", f.Stack)
	return nil
}

func statusCommand(f *flags) *cobra.Command {
	watch := false
	state := run("status", "Show the state of a stack", func(ctx context.Context) error {
		s, err := sandbox.New(f.Options)
		if err != nil {
			return err
		}
		show := func(out io.Writer) error { return s.Status(ctx, out) }
		if watch {
			status.Watch(ctx, os.Stdout, show)
			return nil
		}
		return show(os.Stdout)
	})
	state.Flags().BoolVar(&watch, "watch", false, "show it every five seconds")
	return state
}

func (f *flags) kubeconfig(context.Context) error {
	s, err := sandbox.New(f.Options)
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
	const archives = "Compile the programs that the sandbox runs into an archive, and record its checksums"
	archive := run("archive", archives, func(ctx context.Context) error {
		return toolchain.WriteArchive(ctx, flags.modules(), filepath.Join(flags.Dir, "archived"), output, os.Stdout)
	})
	archive.Flags().StringVar(&output, "output", filepath.Join("dist", "persia-toolchain.tar.gz"), "file of the archive")
	return archive
}

// background makes a command that runs between the commands for people, with all of its options in a text.
func background(use, short string, do func(ctx context.Context, options string) error) *cobra.Command {
	var options string
	command := hidden(use, short, func(ctx context.Context) error { return do(ctx, options) })
	command.Flags().StringVar(&options, "options", "", "the options")
	return command
}

// open returns the stack's sandbox with its toolchain built. It says what a valid stack file must not have before anything
// is compiled.
func (f *flags) open(ctx context.Context, valid bool) (*sandbox.Sandbox, error) {
	s, err := sandbox.New(f.Options)
	if err == nil && valid {
		_, err = s.Config()
	}
	if err != nil {
		return nil, err
	}
	if err := f.buildToolchain(ctx); err != nil {
		return s, err
	}
	return s, f.build(ctx, s.Groups()...)
}

func (f *flags) buildToolchain(ctx context.Context) error {
	if f.archive != "" {
		if err := toolchain.Take(ctx, f.archive, f.modules(), string(f.Tools), f.Out); err != nil {
			return err
		}
	}
	return f.build(ctx, toolchain.OfStacks)
}

// build compiles the programs of groups.
func (f *flags) build(ctx context.Context, groups ...toolchain.Group) error {
	_, err := toolchain.Build(ctx, f.modules(), string(f.Tools), f.Out, groups...)
	return err
}

// modules returns the folder of the modules that the toolchain is compiled from.
func (f *flags) modules() string { return filepath.Join(f.Project, "sandbox", "toolchain") }
