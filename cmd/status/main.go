// Status says what each training job of a cluster does, and why it waits.
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

	"k8s.io/client-go/tools/clientcmd"

	"persia/status"
)

const usage = `Status says what each training job of a cluster does, its last checkpoint, and why it
waits, with the next command. It changes nothing.

Usage: status [--kubeconfig FILE] [--context CONTEXT]

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("status", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		_, _ = fmt.Fprint(stderr, usage) // nowhere else to say it
		flags.PrintDefaults()
	}
	rules, overrides := clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}
	flags.StringVar(&rules.ExplicitPath, "kubeconfig", "", "the kubeconfig `FILE`; by default that of KUBECONFIG, or ~/.kube/config")
	flags.StringVar(&overrides.CurrentContext, "context", "", "the `CONTEXT` of the kubeconfig; by default its current one")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // the flags have said why
	}
	if err := report(ctx, clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides), stdout); err != nil {
		_, _ = fmt.Fprintf(stderr, "status: %v\n", err) // nowhere else to say it
		return 1
	}
	return 0
}

func report(ctx context.Context, kubeconfig clientcmd.ClientConfig, out io.Writer) error {
	config, err := kubeconfig.ClientConfig()
	if err != nil {
		return err
	}
	now, err := status.Read(ctx, config, time.Now())
	if err != nil {
		return err
	}
	if len(now.Jobs) == 0 {
		_, err = fmt.Fprintln(out, "no training job reports its completion: none is there, or all have the engine operator")
		return err
	}
	now.Print(out)
	return nil
}
