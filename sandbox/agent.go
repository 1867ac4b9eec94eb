package sandbox

import (
	"context"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"

	"persia/sandbox/agent"
)

// RunAgent runs, as local processes, the programs of a sandbox that are more
// than simulated pods, until ctx ends. dir keeps its files.
func RunAgent(ctx context.Context, dir, kubeconfig, natsOperator string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	return agent.Run(ctx, agent.Options{
		Config: config,
		Dir:    dir,
		LogDir: filepath.Join(dir, "logs"),
		Programs: map[string]agent.Program{
			agent.NATSOperatorRepository: agent.NATSOperator(natsOperator),
		},
	})
}
