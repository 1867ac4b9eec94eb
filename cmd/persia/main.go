// Persia has the commands beside `pulumi up` of a stack: what the stack still needs, what its jobs do, what a pull
// request would change, and what a killed `pulumi up` has left.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"persia/cmd/persia/preflight"
	"persia/internal/recovery"
	"persia/internal/status"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// failed ends a command with an exit code. Other errors are of wrong usage.
type failed struct {
	code int
	error
}

// ends returns an error that ends a command with an exit code, or with 1 at an error, or nil.
func ends(code int, err error) error {
	if code == 0 && err == nil {
		return nil
	}
	return &failed{max(code, 1), err}
}

// fails returns an error that ends a command with the exit code 1, or nil.
func fails(err error) error { return ends(0, err) }

// version is the version of a release. The build of a release sets it.
var version string

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "persia",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "bin/persia"},
		Short:         "Commands beside `pulumi up` of a stack",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		root.Version = info.Main.Version
	}
	root.AddCommand(preflightCommand(), statusCommand(), previewCommand(), commentCommand(), recoverCommand(), pricesCommand(), sizeCommand())
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	code := 2
	if end := (*failed)(nil); errors.As(err, &end) {
		code, err = end.code, end.error
	} else if err == nil {
		code = 0
	}
	if missing := (*exec.Error)(nil); errors.As(err, &missing) && missing.Name == "pulumi" {
		err = fmt.Errorf("%w; %s", missing, preflight.Install)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", command.CommandPath(), err) // nowhere else to say it
	}
	return code
}

// ofStack adds the flag --stack. Without it, a command is of the stack that the user has selected.
func ofStack(command *cobra.Command, stack *string) *cobra.Command {
	command.Flags().StringVarP(stack, "stack", "s", "", "the `STACK`, as in Pulumi.STACK.yaml; by default the one selected with Pulumi")
	command.PreRunE = func(command *cobra.Command, _ []string) error {
		if *stack != "" {
			return nil
		}
		name, err := exec.CommandContext(command.Context(), "pulumi", "stack", "--show-name", "--non-interactive").Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return fmt.Errorf("no stack is selected: write --stack, or run `pulumi stack select`: %s", bytes.TrimSpace(exit.Stderr))
		}
		*stack = strings.TrimSpace(string(name))
		return err
	}
	return command
}

// format is how a command prints its result: text or json.
type format string

func (f *format) String() string { return string(*f) }

func (f *format) Type() string { return "FORMAT" }

// Set takes the value of a flag.
func (f *format) Set(value string) error {
	if value != "text" && value != "json" {
		return errors.New("write text or json")
	}
	*f = format(value)
	return nil
}

// flag adds the flag --output.
func (f *format) flag(command *cobra.Command) {
	*f = "text"
	command.Flags().VarP(f, "output", "o", "text, or json as in docs/reference/output.schema.json")
}

// print prints a result as JSON, or calls asText.
func (f *format) print(out io.Writer, result any, asText func() error) error {
	if *f == "text" {
		return asText()
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(result)
}

func preflightCommand() *cobra.Command {
	var stack string
	var output format
	command := &cobra.Command{
		Use:     "preflight",
		Short:   "Report what is missing before `pulumi up`",
		Example: "  bin/persia preflight -s prod",
		Long: `Preflight reports what "pulumi up" of a stack would find out only after minutes: the project's
APIs and quotas, the machines of its zones, its buckets, and the way to the cluster. It asks gcloud, and
changes nothing.

Each line begins with one of
  ok         nothing to do
  unchecked  it could not be checked, and the line says why
  warning    "pulumi up" may fail, or works with a limitation
  missing    "pulumi up" fails without it

Exit codes:
  0  nothing is missing; something may be unchecked
  1  something is missing
  2  wrong usage, or the stack file cannot be read or has errors`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			checks, err := preflight.Run(command.Context(), stack, preflight.CLI)
			if err == nil {
				out := command.OutOrStdout()
				err = output.print(out, map[string]any{"checks": checks}, func() error { return preflight.Print(out, checks) })
				err = cmp.Or(err, context.Cause(command.Context()))
			}
			if err == nil && preflight.Failed(checks) {
				return &failed{1, nil}
			}
			return err
		},
	}
	output.flag(command)
	return ofStack(command, &stack)
}

func statusCommand() *cobra.Command {
	var output format
	rules, overrides := clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}
	var job string
	var watch bool
	command := &cobra.Command{
		Use:   "status",
		Short: "Say what each training job does, and why it waits",
		Example: "  bin/persia status --watch\n  bin/persia status --wait criteo && echo complete\n" +
			"  bin/persia status -o json | jq .jobs[].state",
		Long: `Status says what the nodes of a cluster cost, which jobs have their GPUs, what each training job
does, its last checkpoint, and why it waits, with the next command. It changes nothing.

With --wait, it shows how a job goes on until it has ended, and exits with 0 if the job is complete,
with 1 if it has failed, and with 3 if that is unknown: there is no such job, the API server has not answered
at the start or for an hour, or the wait was interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
			if clientcmd.IsEmptyConfig(err) {
				err = errors.New("there is no kubeconfig: run `gcloud container clusters get-credentials CLUSTER`, or write --kubeconfig")
			}
			if err != nil {
				return fails(err)
			}
			if job != "" {
				err := status.Follow(command.Context(), config, job, command.OutOrStdout())
				if errors.Is(err, status.ErrUnknown) {
					return ends(3, err)
				}
				return fails(err)
			}
			show := func(out io.Writer) error {
				now, err := status.Read(command.Context(), config, time.Now())
				if err != nil {
					return err
				}
				return output.print(out, now, func() error { now.Print(out); return nil })
			}
			if watch {
				status.Watch(command.Context(), command.OutOrStdout(), show)
				return nil
			}
			return fails(show(command.OutOrStdout()))
		},
	}
	command.Flags().StringVar(&rules.ExplicitPath, "kubeconfig", "", "the kubeconfig `FILE`; by default that of KUBECONFIG, or ~/.kube/config")
	command.Flags().StringVar(&overrides.CurrentContext, "context", "", "the `CONTEXT` of the kubeconfig; by default its current one")
	output.flag(command)
	command.Flags().BoolVar(&watch, "watch", false, "show it every five seconds")
	command.Flags().StringVar(&job, "wait", "", "the `JOB` to wait for")
	return command
}

func previewCommand() *cobra.Command {
	var stack string
	var diff bool
	var output format
	var failOn []string
	command := &cobra.Command{
		Use:     "preview [-s STACK] [--diff] [-- COMMAND…]",
		Short:   "Preview a stack, with the summary last",
		Example: "  bin/persia preview -s dev\n  bin/persia preview -s dev --diff\n  bin/persia preview -s prod --fail-on restart,delete",
		Long: `Preview lists the resources that "pulumi up" would change, and then what the stack newly needs, warnings, what
happens to what runs, and the cost. It runs "pulumi preview", or another command that prints the engine's
events, and exits with its exit code.

With --fail-on, it exits with 3 if pods of a job, of NATS, or of PEDL end (restart), or if a resource is
deleted or replaced that Pulumi does not keep (delete), so that CI can hold a pull request.`,
		RunE: func(command *cobra.Command, args []string) error {
			if at := slices.IndexFunc(failOn, func(what string) bool { return what != "restart" && what != "delete" }); at >= 0 {
				return fmt.Errorf("--fail-on: %q: write restart, delete, or both", failOn[at])
			}
			p, err := previewOf(stack, args, command.ErrOrStderr())
			if err != nil {
				return err
			}
			out := command.OutOrStdout()
			err = output.print(out, p.summary(), func() error { _, err := io.WriteString(out, forTerminal(p, diff)); return err })
			return cmp.Or(err, p.held(failOn))
		},
	}
	output.flag(command)
	command.Flags().StringSliceVar(&failOn, "fail-on", nil, "what to exit with 3 for: `WHAT` is restart, delete, or both")
	command.Flags().BoolVar(&diff, "diff", false, "show each value that changes, each new object, and all needs")
	return ofStack(command, &stack)
}

func commentCommand() *cobra.Command {
	var stack, title string
	command := &cobra.Command{
		Use:     "comment [-s STACK] [--title TITLE] [-- COMMAND…]",
		Short:   "Preview a stack, and print a comment for its pull request",
		Example: "  bin/persia comment -s prod > comment.md",
		Long: `Comment previews a stack with "pulumi preview", or with another command, and prints a summary
for its reviewer as the Markdown of one comment. It exits with the exit code of the preview; if the
preview fails, the comment says why.`,
		RunE: func(command *cobra.Command, args []string) error {
			return previewAndComment(stack, title, args, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	command.Flags().StringVar(&title, "title", "Preview", "what the comment is about: Preview, Drift")
	return ofStack(command, &stack)
}

func recoverCommand() *cobra.Command {
	var stack string
	command := &cobra.Command{
		Use:     "recover",
		Short:   "Complete the state of a stack after a killed `pulumi up`",
		Example: "  bin/persia recover -s dev",
		Long: `Recover completes the state of a stack after "pulumi up" was killed. Each resource that was being
created and exists is in the state then. Run "pulumi cancel" first, and make sure that no other update runs.
You can run it again at any time.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			err := recovery.CheckProcesses(command.Context())
			if err == nil {
				err = recovery.Run(command.Context(), recovery.CLI(stack), command.OutOrStdout())
			}
			return fails(err)
		},
	}
	return ofStack(command, &stack)
}
