package sandbox

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"persia/sandbox/agent"
	"persia/sandbox/controlplane"
	"persia/sandbox/gcp/autoscaler"
	"persia/sandbox/gcp/loadbalancer"
	"persia/sandbox/gcp/nodepools"
)

// RunAgent runs, until ctx ends, what a sandbox needs between its commands: local processes
// for the pods that are more than simulated, Google Cloud's autoscaler and load balancers,
// the repair of node pools, and retries of the control plane's cleanups. It writes to dir.
func RunAgent(ctx context.Context, dir, kubeconfig, natsOperator string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	// The Pulumi SDK silences the default logger.
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return autoscaler.Run(ctx, config, logger) })
	group.Go(func() error { return nodepools.Repair(ctx, config, logger) })
	group.Go(func() error { return loadbalancer.Run(ctx, config, logger) })
	group.Go(func() error { return controlplane.RetryCleanups(ctx, config, logger) })
	group.Go(func() error {
		return agent.Run(ctx, agent.Options{
			Config: config,
			Dir:    dir,
			LogDir: filepath.Join(dir, "logs"),
			Programs: map[string]agent.Program{
				agent.NATSOperatorRepository: agent.NATSOperator(natsOperator),
			},
			Logger: logger,
		})
	})
	return group.Wait()
}
