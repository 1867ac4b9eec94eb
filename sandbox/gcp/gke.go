package gcp

import (
	"errors"
	"sync"

	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"persia/sandbox/gcp/addon"
	"persia/sandbox/gcp/nodepools"
)

// errNotRunning answers whatever needs the control plane.
var errNotRunning = errors.New("the sandbox does not run: start it with `make up`")

// kubernetesEngine is Google Kubernetes Engine, with one API server for all clusters.
type kubernetesEngine struct {
	// config is nil while the API server does not run.
	config *rest.Config
	client func() (kubernetes.Interface, error)
	nodes  nodepools.Nodes
	addons addon.ControlPlane
}

func newGKE(config *rest.Config, machines nodepools.Machines, realPool string) kubernetesEngine {
	client := sync.OnceValues(func() (kubernetes.Interface, error) {
		if config == nil {
			return nil, errNotRunning
		}
		return kubernetes.NewForConfig(config)
	})
	return kubernetesEngine{
		config: config,
		client: client,
		nodes:  nodepools.Nodes{Client: client, Machines: machines, Real: realPool},
		addons: addon.ControlPlane{Client: client, Extensions: sync.OnceValues(func() (extensions.Interface, error) {
			if config == nil {
				return nil, errNotRunning
			}
			return extensions.NewForConfig(config)
		})},
	}
}

// gkeOn is Google Kubernetes Engine over clients of an API server.
func gkeOn(config *rest.Config, client kubernetes.Interface, extensionsClient extensions.Interface) kubernetesEngine {
	reached := func() (kubernetes.Interface, error) { return client, nil }
	return kubernetesEngine{
		config: config,
		client: reached,
		nodes:  nodepools.Nodes{Client: reached},
		addons: addon.ControlPlane{Client: reached, Extensions: func() (extensions.Interface, error) { return extensionsClient, nil }},
	}
}
