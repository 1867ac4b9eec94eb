package config

import (
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
	"persia/gcp"
)

// Cluster is the GKE cluster and its network. The stack creates them, or, with `existing`, uses an existing cluster.
type Cluster struct {
	// Name is the name of the cluster, and the prefix of the names of its network, router, and node service account.
	Name string `json:"name" form:"name"`
	// Existing describes an existing cluster. Of the other fields, only `name` and `replace` apply.
	Existing *ExistingCluster `json:"existing,omitempty"`
	// Region is a Google Cloud region, like us-central1.
	Region string `json:"region,omitempty"`
	// Zones are zones of the region, like us-central1-a, for the system pool and for
	// pools without their own. Default: three that GKE chooses.
	Zones []string `json:"zones,omitempty"`
	// ReleaseChannel is RAPID, REGULAR or STABLE.
	ReleaseChannel string `json:"releaseChannel,omitempty" default:"REGULAR" enum:"RAPID,REGULAR,STABLE"`
	// DeletionProtection prevents the deletion of the cluster, and the deletion and replacement of its node pools.
	DeletionProtection bool `json:"deletionProtection,omitempty" default:"true"`
	// Replace names a cluster that an update may replace although jobs run in it. Default: none.
	Replace     string      `json:"replace,omitempty"`
	Maintenance Maintenance `json:"maintenance,omitempty"`

	// PrivateEndpoint removes the control plane's public endpoint: Pulumi must run inside the network.
	PrivateEndpoint bool `json:"privateEndpoint,omitempty"`
	// AuthorizedNetworks may reach the control plane. Default: only the cluster's own network.
	AuthorizedNetworks []AuthorizedNetwork `json:"authorizedNetworks,omitempty"`
	Network            Network             `json:"network,omitempty"`
	Encryption         Encryption          `json:"encryption,omitempty"`

	SystemPool SystemPool `json:"systemPool,omitempty"`
	// ImageStreaming starts containers before their image is fully pulled. It works for Artifact
	// Registry, also through persia:images, on Container-Optimized OS.
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
	// PrometheusOperator says that the cluster has the Prometheus Operator: it gets alerts as PrometheusRules.
	PrometheusOperator bool `json:"prometheusOperator,omitempty"`
}

// Maintenance is when GKE may work on the cluster.
type Maintenance struct {
	// StartTime is when the daily window of four hours begins, like 03:00, in UTC.
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

// Encryption names keys of Cloud KMS, as projects/P/locations/L/keyRings/R/cryptoKeys/K, which the
// stack lets GKE use. Default: Google's own keys.
type Encryption struct {
	// Secrets encrypts the Secrets of the cluster. The key must be in the cluster's region.
	Secrets string `json:"secrets,omitempty" form:"kmsKey"`
	// BootDisks encrypts all boot disks. The key must be in the cluster's region or global.
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

// Logging selects the logs that GKE writes to Cloud Logging.
type Logging struct {
	// Components are the parts of GKE to log. Default: all of SYSTEM_COMPONENTS, which the others
	// require; WORKLOADS, the pods; APISERVER, SCHEDULER and CONTROLLER_MANAGER; [] disables all.
	Components []string `json:"components,omitempty" unique:"true" default:"SYSTEM_COMPONENTS,WORKLOADS,APISERVER,SCHEDULER,CONTROLLER_MANAGER" enum:"SYSTEM_COMPONENTS,WORKLOADS,APISERVER,SCHEDULER,CONTROLLER_MANAGER"`
}

// Monitoring selects the metrics that GKE writes to Cloud Monitoring.
type Monitoring struct {
	// Components are the parts of GKE to measure. Default: all of SYSTEM_COMPONENTS, which the others require,
	// STORAGE, HPA, POD, DAEMONSET, DEPLOYMENT, STATEFULSET, CADVISOR, KUBELET and DCGM (GPUs); [] disables all.
	Components []string `json:"components,omitempty" unique:"true" default:"SYSTEM_COMPONENTS,STORAGE,HPA,POD,DAEMONSET,DEPLOYMENT,STATEFULSET,CADVISOR,KUBELET,DCGM" enum:"SYSTEM_COMPONENTS,STORAGE,HPA,POD,DAEMONSET,DEPLOYMENT,STATEFULSET,CADVISOR,KUBELET,DCGM"`
	// ManagedPrometheus collects the metrics that pods export.
	ManagedPrometheus bool `json:"managedPrometheus,omitempty" default:"true"`
}

// addresses counts the addresses that all pools need when each is at its maximum.
func (s *Stack) addresses() addressNeeds {
	var needs addressNeeds
	for _, p := range s.Pools() {
		needs.Nodes += p.MostNodes()
		needs.PodAddresses += p.MostNodes() * capacity.PodAddresses(p.MaxPodsPerNode)
	}
	return needs
}

func (s *Stack) checkExistingCluster(p *input.Problems) {
	at, c := field.NewPath(clusterKey), s.Cluster
	input.OnlyFields(p, at, c, "of an existing cluster", "name", "existing", "replace")
	existing := at.Child("existing")
	if c.Existing.Kubeconfig == "" && c.Existing.Context == "" {
		p.Required(existing.Child("context"), "write a context of your kubeconfig, as `kubectl config get-contexts` lists them, or kubeconfig with the path of one")
	}
	if k := c.Existing.Kubeconfig; k != "" && !path.IsAbs(k) {
		p.Invalid(existing.Child("kubeconfig"), k, "must be the absolute path of a kubeconfig file, because Pulumi runs programs in other directories")
	}
	s.checkPool(p, existing.Child("systemPool"), c.Existing.SystemPool, s.poolNames(), false)
	for i, pool := range s.NodePools {
		input.OnlyFields(p, field.NewPath(nodePoolsKey).Index(i), pool, "of an existing pool",
			"name", "machineType", "nodes", "autoscaling", "spareNodes", "spot", "gpu", "maxPodsPerNode", "taints")
	}
}

// checkSystemPool checks the system pool of a cluster that the stack creates.
func (s *Stack) checkSystemPool(p *input.Problems) {
	path, pool := field.NewPath(clusterKey, "systemPool"), s.Cluster.SystemPool
	machineType := path.Child("machineType")
	switch m, ok := s.MachineTypes.check(p, machineType, pool.MachineType); {
	case ok && (m.GPUs > 0 || m.Arm()):
		p.Invalid(machineType, m.Type, "has GPUs or Arm processors, and nothing in the system pool can use them; write a type without, like e2-standard-4")
	case ok && !slices.Contains(m.BootDisks(), gcp.PDBalanced):
		p.Invalid(machineType, m.Type, "does not support pd-balanced, the boot disk type of the system pool; write a type that does, like e2-standard-4")
	}
	switch {
	case pool.Nodes < 1: // reported by its tag
	case pool.Nodes < 2 && s.Cluster.DeletionProtection:
		p.Invalid(path.Child("nodes"), pool.Nodes, "must be at least 2, so that the cluster's own services survive the loss of a node; only a cluster with deletionProtection: false can have 1")
	default:
		checkSpread(p, path.Child("nodes"), pool.Nodes, s.systemPool().ZoneCount())
	}
}

// check checks a resolved cluster that the stack creates.
func (c *Cluster) check(p *input.Problems, path *field.Path, needs addressNeeds) {
	input.Form(p, path.Child("region"), "region", c.Region)
	input.Zones(p, path.Child("zones"), c.Region, c.Zones)
	// GKE refuses other keys only when it creates a node pool. Google refuses the wrong key of anything else at once.
	key := input.KMSKeyForm.FindStringSubmatch(c.Encryption.BootDisks)
	if key != nil && input.IsRegion(c.Region) && key[1] != c.Region && key[1] != "global" {
		p.Invalid(path.Child("encryption", "bootDisks"), c.Encryption.BootDisks, "must be in the location %s or global, because Compute Engine accepts keys only from there; write a key in one of these", c.Region)
	}
	c.checkAuthorizedNetworks(p, path)
	c.Network.check(p, path.Child("network"), needs)
}
