// Package gke plays what GKE does in the control plane of a cluster. It makes simulated nodes of the
// node pools, with the labels, taints and allocatable capacity of GKE's, and replaces, repairs and
// counts them. It installs GKE's storage drivers and kinds, and gives addresses to load balancers.
// Package autoscaler chooses the number of nodes of autoscaled pools.
package gke

import (
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strings"

	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"persia/sandbox/gcp/google"
)

// ErrNotRunning answers whatever needs the control plane.
var ErrNotRunning = errors.New("the sandbox does not run: start it with `make up`")

// Engine is Google Kubernetes Engine, with one API server for all clusters.
type Engine struct {
	// Cloud keeps the clusters and node pools.
	Cloud *google.Cloud
	// Config, Client, and Extensions are nil while the API server does not run.
	Config     *rest.Config
	Client     kubernetes.Interface
	Extensions extensions.Interface
	Machines   Machines
	// Real is the node pool whose node is a real one, or "".
	Real string
}

// New returns the engine at an API server. config is nil while that does not run.
func New(cloud *google.Cloud, config *rest.Config, machines Machines, realPool string) (e Engine, err error) {
	e = Engine{Cloud: cloud, Config: config, Machines: machines, Real: realPool}
	if config == nil {
		return e, nil
	}
	if e.Client, err = kubernetes.NewForConfig(config); err == nil {
		e.Extensions, err = extensions.NewForConfig(config)
	}
	return e, err
}

// Connect adds to the request for a cluster where the API server is that simulates it.
func (e Engine) Connect(cluster google.Body) error {
	if e.Config == nil {
		return ErrNotRunning
	}
	cluster["endpoint"] = e.endpoint()
	google.Set(cluster, "masterAuth.clusterCaCertificate", base64.StdEncoding.EncodeToString(e.Config.CAData))
	return nil
}

func (e Engine) endpoint() string { return strings.TrimPrefix(e.Config.Host, "https://") }

// Own returns the clusters or the node pools that the API server simulates. The commands of all stacks share the cloud.
func (e Engine) Own(kind string) (map[string]google.Body, error) {
	all, err := e.Cloud.List(kind)
	for path := range all {
		cluster, unread := e.Cloud.Get(google.Cluster, google.ClusterOf(path, nil))
		err = errors.Join(err, unread)
		if e.Config == nil || google.Text(cluster, "endpoint") != e.endpoint() {
			delete(all, path)
		}
	}
	return all, err
}

// Pools returns the pools of simulated nodes that no command is changing.
func (e Engine) Pools() ([]Pool, error) {
	bodies, err := e.Own(google.NodePool)
	var pools []Pool
	for _, path := range slices.Sorted(maps.Keys(bodies)) {
		if google.Text(bodies[path], "status") != "RUNNING" || google.Segment(path) == e.Real {
			continue
		}
		pool, err := NewPool(path, bodies[path], e.Machines)
		if err != nil {
			return nil, err
		}
		pools = append(pools, pool)
	}
	return pools, err
}
