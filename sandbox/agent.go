package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"persia/sandbox/agent"
	"persia/sandbox/gcp/autoscaler"
	"persia/sandbox/gcp/gke"
	"persia/sandbox/gcp/google"
)

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
