package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
)

// Site is where a stack is.
type Site struct {
	// Project is the ID of the Google Cloud project. Omit it on an existing cluster.
	Project string `key:"project"`

	Cluster Cluster `key:"cluster" missing:"write an object with name, region and zones"`
}

// existing reports whether the cluster exists already, and the stack creates nothing in Google Cloud.
func (s *Site) existing() bool { return s.Cluster.Existing != nil }

// SystemPoolName returns the name of the pool for everything except training: the cluster's
// own, or on an existing cluster the one that the stack file names.
func (s *Site) SystemPoolName() string {
	if s.Cluster.Existing != nil {
		return s.Cluster.Existing.SystemPool
	}
	return SystemPoolName
}

// SystemPoolName is the name of the system pool of a cluster that the stack creates. Pools of the
// stack file cannot have this name.
const SystemPoolName = "system"

// Cluster is the GKE cluster and its network, which the stack creates unless you set `existing`.
type Cluster struct {
	// Name is the name of the cluster. Its network, router, and node service account have names that begin with it.
	Name string `json:"name" form:"name"`
	// Existing is an existing cluster. Of the other fields, only `name` and `replace` apply.
	Existing *ExistingCluster `json:"existing,omitempty"`
	// Region is the region, like us-central1.
	Region string `json:"region,omitempty"`
	// Zones are zones like us-central1-a, for the system pool and pools without their own. Default: three that GKE
	// chooses.
	Zones []string `json:"zones,omitempty"`
	// ReleaseChannel is RAPID, REGULAR or STABLE.
	ReleaseChannel string `json:"releaseChannel,omitempty" default:"REGULAR" enum:"RAPID,REGULAR,STABLE"`
	// DeletionProtection prevents the deletion and replacement of the cluster and its node pools.
	DeletionProtection bool `json:"deletionProtection,omitempty" default:"true"`
	// Replace names a cluster that an update may replace although jobs run in it.
	Replace     string      `json:"replace,omitempty"`
	Maintenance Maintenance `json:"maintenance,omitempty"`

	// PrivateEndpoint removes the control plane's public endpoint: Pulumi must run inside the network.
	PrivateEndpoint bool `json:"privateEndpoint,omitempty"`
	// AuthorizedNetworks may reach the control plane. Default: only the cluster's own network.
	AuthorizedNetworks []AuthorizedNetwork `json:"authorizedNetworks,omitempty"`
	Network            Network             `json:"network,omitempty"`
	Encryption         Encryption          `json:"encryption,omitempty"`

	SystemPool SystemPool `json:"systemPool,omitempty"`
	// ImageStreaming starts containers before their image is fully pulled, from Artifact Registry, also through
	// persia:images, on Container-Optimized OS.
	ImageStreaming bool       `json:"imageStreaming,omitempty" default:"true"`
	Logging        Logging    `json:"logging,omitempty"`
	Monitoring     Monitoring `json:"monitoring,omitempty"`
}

// ExistingCluster says how to reach an existing cluster. Set `kubeconfig`, `context`, or both.
type ExistingCluster struct {
	// Kubeconfig is the absolute path of a kubeconfig file. Default: $KUBECONFIG, or ~/.kube/config.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Context is a context of the kubeconfig. Default: its current one.
	Context string `json:"context,omitempty"`
	// SystemPool is the node pool of the stack file for everything except training.
	SystemPool string `json:"systemPool"`
	// PrometheusOperator creates alerts as PrometheusRules, for the Prometheus Operator of the cluster.
	PrometheusOperator bool `json:"prometheusOperator,omitempty"`
}

// Maintenance is when GKE may work on the cluster.
type Maintenance struct {
	// StartTime is when the daily window of four hours begins, in UTC.
	StartTime  string      `json:"startTime,omitempty" default:"03:00" form:"clock"`
	Exclusions []Exclusion `json:"exclusions,omitempty" unique:"name"`
}

// Exclusion is a period in which GKE upgrades neither the minor version of the control plane nor any node.
type Exclusion struct {
	// Name identifies the exclusion.
	Name string `json:"name"`
	// Start is when it begins, in UTC, like 2026-12-01T00:00:00Z.
	Start string `json:"start" form:"time"`
	// End is when it ends, at most 180 days after `start`.
	End string `json:"end" form:"time"`
}

// Encryption are Cloud KMS keys, as projects/P/locations/L/keyRings/R/cryptoKeys/K, which the stack lets GKE use.
// Default: Google's own keys.
type Encryption struct {
	// Secrets encrypts Secrets. The key must be in the cluster's region.
	Secrets string `json:"secrets,omitempty" form:"kmsKey"`
	// BootDisks encrypts boot disks. The key must be in the cluster's region or global.
	BootDisks string `json:"bootDisks,omitempty" form:"kmsKey"`
}

// SystemPool is the node pool for everything except training.
type SystemPool struct {
	// MachineType is a machine type without GPUs.
	MachineType string `json:"machineType,omitempty" default:"e2-standard-4"`
	// Nodes is the number of nodes across all zones: at least 2, or 1 with `deletionProtection`:
	// false. Default 2, or one per zone if the cluster has more than two.
	Nodes int `json:"nodes,omitempty"`
}

// Logging are the logs that GKE writes to Cloud Logging.
type Logging struct {
	// Components are the parts of GKE to log. Default: all of SYSTEM_COMPONENTS, which the others require, WORKLOADS
	// (pods), APISERVER, SCHEDULER and CONTROLLER_MANAGER. [] disables all.
	Components []string `json:"components,omitempty" unique:"true" default:"logging" enum:"logging"`
}

// Monitoring are the metrics that GKE writes to Cloud Monitoring.
type Monitoring struct {
	// Components are the parts of GKE to measure. Default: all of SYSTEM_COMPONENTS, which the others require,
	// STORAGE, HPA, POD, DAEMONSET, DEPLOYMENT, STATEFULSET, CADVISOR, KUBELET and DCGM (GPUs); [] disables all.
	Components []string `json:"components,omitempty" unique:"true" default:"monitoring" enum:"monitoring"`
	// ManagedPrometheus collects the metrics that pods export.
	ManagedPrometheus bool `json:"managedPrometheus,omitempty" default:"true"`
}

// check checks a resolved cluster that the stack creates.
func (c *Cluster) check(p *input.Problems, path *field.Path, needs addressNeeds) {
	input.Form(p, path.Child("region"), "region", c.Region)
	input.Zones(p, path.Child("zones"), c.Region, c.Zones)
	// GKE refuses other keys only when it creates a node pool. Google refuses the wrong key of anything else at once.
	key := input.KMSKeyForm.FindStringSubmatch(c.Encryption.BootDisks)
	if key != nil && input.IsRegion(c.Region) && key[1] != c.Region && key[1] != "global" {
		p.Invalid(path.Child("encryption", "bootDisks"), c.Encryption.BootDisks,
			"must be in the location %s or global, because Compute Engine accepts no other; write such a key", c.Region)
	}
	c.checkAuthorizedNetworks(p, path)
	c.Network.check(p, path.Child("network"), needs)
}

func (c *Cluster) checkAuthorizedNetworks(p *input.Problems, cluster *field.Path) {
	networks, path := c.AuthorizedNetworks, cluster.Child("authorizedNetworks")
	private := len(networks) > 0
	for i, n := range networks {
		at := path.Index(i).Child("cidr")
		prefix, ok := checkCIDR(p, at, n.CIDR)
		private = private && ok && reserved(prefix)
		if ok && prefix.Bits() < 8 {
			p.Invalid(at, n.CIDR, "opens the control plane to the world; write the range that its operators connect from, /8 or smaller")
		}
	}
	const first = "the stack creates the network, in which no machine can be when `pulumi up` creates the first Kubernetes objects"
	switch {
	case c.PrivateEndpoint:
		p.WarnFirst(cluster.Child("privateEndpoint"), "Pulumi must run inside the network %s, and %s; bring the cluster up "+
			"without privateEndpoint first, and connect your machine", c.Name, first)
	case private:
		p.WarnFirst(path, "has only ranges that nobody has on the internet, and %s; add the public address that you connect from", first)
	case len(networks) == 0:
		p.WarnFirst(path, "is empty, so that only machines in the network %s can connect to the control plane, and %s; "+
			"add the public address that you connect from", c.Name, first)
	}
}
