// Preflight checks that everything that `pulumi up` of a stack needs is there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"persia/preflight"
)

const usage = `Preflight reports what is missing before "pulumi up" of a stack: programs, plugins,
logins, the project's APIs and its quotas. It changes nothing.

Usage: preflight [--stack STACK] [--dir DIR] [--offline] [--timeout DURATION]

`

const exitCodes = `
Each line begins with one of
  ok         nothing to do
  unchecked  it could not be checked, and the line says why
  warning    "pulumi up" may fail, or works with a limitation
  missing    "pulumi up" fails without it

Exit codes:
  0  nothing is missing; something may be unchecked
  1  something is missing
  2  wrong usage, or the stack file cannot be read or has errors
`

// The exit codes.
const (
	exitOK = iota
	exitMissing
	exitUsage
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	options, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		return exitUsage // the flags have said why
	}
	checks, err := preflight.Run(ctx, options)
	if err == nil {
		err = preflight.Print(stdout, checks)
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "preflight: %v\n", err) // nowhere else to say it
		return exitUsage
	case preflight.Failed(checks):
		return exitMissing
	default:
		return exitOK
	}
}

func parse(args []string, stderr io.Writer) (preflight.Options, error) {
	var options preflight.Options
	flags := flag.NewFlagSet("preflight", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		_, _ = fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
		_, _ = fmt.Fprint(stderr, exitCodes)
	}
	flags.StringVar(&options.Stack, "stack", "dev", "stack, as in Pulumi.`STACK`.yaml")
	flags.StringVar(&options.Dir, "dir", ".", "folder of Pulumi.yaml and the stack files")
	flags.BoolVar(&options.Offline, "offline", false, "skip all checks that need the network")
	flags.DurationVar(&options.Timeout, "timeout", 30*time.Second, "time limit for each gcloud or pulumi command")
	if err := flags.Parse(args); err != nil {
		return options, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q; name the stack with --stack", flags.Arg(0))
		_, _ = fmt.Fprintf(stderr, "preflight: %v\n", err)
		return options, err
	}
	return options, nil
}
