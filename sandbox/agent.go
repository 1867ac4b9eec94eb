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

// RunAgent runs what must go on between the commands of a sandbox, until ctx ends:
// as local processes the programs that are more than simulated pods, Google Cloud's
// autoscaler and load balancers, and what the control plane would leave undone. dir keeps its files.
func RunAgent(ctx context.Context, dir, kubeconfig, natsOperator string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	// The Pulumi SDK, which is part of this program, silences slog's own.
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
