package sandbox

import (
	"context"
	"log/slog"
	"os"
	"os/exec"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"persia/sandbox/agent"
	"persia/sandbox/controlplane"
	"persia/sandbox/gcp/autoscaler"
	"persia/sandbox/gcp/gke"
	"persia/sandbox/toolchain"
)

// AgentOptions say what [RunAgent] runs, and where.
type AgentOptions struct {
	// Dir is the folder that the agent writes to.
	Dir, Kubeconfig string
	// Tools is the toolchain, built.
	Tools toolchain.Tools
	// Proxy is the socket on which the API server asks for connections to pods.
	Proxy string
	// NodeTunnel is the socket at which the real node connects to its pods.
	NodeTunnel string
}

// RunAgent runs the services that a sandbox needs between its commands, until ctx ends: local
// processes for pods that are not only simulated, Google Cloud's autoscaler and load balancers, the
// repair of node pools, and retries of the control plane's cleanups.
func RunAgent(ctx context.Context, options AgentOptions) error {
	config, err := clientcmd.BuildConfigFromFlags("", options.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // the API server is on this machine and protects itself
	// The Pulumi SDK silences the default logger.
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	// Stacks without jobs on pools with queued provisioning need no Python.
	python, err := exec.LookPath("python3")
	if err != nil {
		python = "python3"
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return autoscaler.Run(ctx, config, logger) })
	group.Go(func() error { return gke.Repair(ctx, config, logger) })
	group.Go(func() error { return gke.GiveAddresses(ctx, config, logger) })
	group.Go(func() error { return controlplane.RetryCleanups(ctx, config, logger) })
	group.Go(func() error {
		return agent.Run(ctx, agent.Options{
			Config: config,
			Dir:    options.Dir,
			Programs: map[string]agent.Program{
				agent.NATSOperatorRepository: agent.NATSOperator(options.Tools.Path("nats-operator")),
				agent.JobSetRepository:       agent.JobSet(options.Tools.Path("jobset-controller")),
				agent.KueueRepository:        agent.Kueue(options.Tools.Path("kueue")),
				agent.PythonRepository:       agent.Python(python),
			},
			Proxy:      options.Proxy,
			NodeTunnel: options.NodeTunnel,
			Logger:     logger,
		})
	})
	return group.Wait()
}
