package sandbox

import (
	"context"

	"k8s.io/client-go/kubernetes"
)

// AwaitTrainings waits until all training jobs of the stack are complete. It shows how they go
// on and what their scripts report. A job that
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
	return awaitTrainings(ctx, client, s.options.Out)
}
