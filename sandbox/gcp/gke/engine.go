package gke

import (
	"errors"
	"sync"

	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ErrNotRunning answers whatever needs the control plane.
var ErrNotRunning = errors.New("the sandbox does not run: start it with `make up`")

// Engine is Google Kubernetes Engine, with one API server for all clusters.
type Engine struct {
	// Client and Extensions return clients of the API server.
	Client     func() (kubernetes.Interface, error)
	Extensions func() (extensions.Interface, error)
	// Config is nil while the API server does not run.
	Config   *rest.Config
	Machines Machines
	// Real is the node pool whose node is a real one, or "".
	Real string
}

// New returns the engine at an API server. config is nil while that does not run.
func New(config *rest.Config, machines Machines, realPool string) Engine {
	return Engine{
		Client:     client(config, func() (kubernetes.Interface, error) { return kubernetes.NewForConfig(config) }),
		Extensions: client(config, func() (extensions.Interface, error) { return extensions.NewForConfig(config) }),
		Config:     config, Machines: machines, Real: realPool,
	}
}

func client[T any](config *rest.Config, connect func() (T, error)) func() (T, error) {
	return sync.OnceValues(func() (none T, err error) {
		if config == nil {
			return none, ErrNotRunning
		}
		return connect()
	})
}
