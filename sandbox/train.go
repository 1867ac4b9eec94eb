package sandbox

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"persia/sandbox/node"
)

// AwaitTrainings waits until all training jobs of the stack are complete. It shows how they go
// on and what their scripts report, and draws the losses into the stack's folder. A job that
// has failed is an error, once all have ended.
func (s *Sandbox) AwaitTrainings(ctx context.Context) error {
	config, err := s.cluster.RESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return awaitTrainings(ctx, client, s.options.Out, s.path("losses"))
}

// PeakMemory returns the most memory, in bytes, that the real node has used so far.
func (s *Sandbox) PeakMemory() (int64, error) { return node.PeakMemory(s.path("node")) }
