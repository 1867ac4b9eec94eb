package sandbox

import (
	"context"
	"log/slog"
	"os"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"persia/sandbox/agent"
	"persia/sandbox/controlplane"
	"persia/sandbox/gcp/autoscaler"
	"persia/sandbox/gcp/gke"
)

// RunAgent runs the services that a sandbox needs between its commands, until ctx ends: local
// processes for pods that are not only simulated, Google Cloud's autoscaler and load balancers, the
// repair of node pools, and retries of the control plane's cleanups.
func RunAgent(ctx context.Context, kubeconfig string, options agent.Options) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // the API server is on this machine and protects itself
	// The Pulumi SDK silences the default logger.
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	options.Config, options.Logger = config, logger
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return autoscaler.Run(ctx, config, logger) })
	group.Go(func() error { return gke.Repair(ctx, config, logger) })
	group.Go(func() error { return gke.GiveAddresses(ctx, config, logger) })
	group.Go(func() error { return controlplane.RetryCleanups(ctx, config, logger) })
	group.Go(func() error { return agent.Run(ctx, options) })
	return group.Wait()
}
