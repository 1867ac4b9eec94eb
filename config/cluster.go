package config

import (
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/check"
	"persia/config/clusterspec"
	"persia/config/natsspec"
	"persia/config/poolspec"
	"persia/gcp"
)

// addresses counts the addresses that all pools need when each is at its maximum.
func (s *Stack) addresses() clusterspec.Needs {
	var needs clusterspec.Needs
	for _, p := range s.Pools() {
		needs.Nodes += p.MostNodes()
		needs.PodAddresses += p.MostNodes() * capacity.PodAddresses(p.MaxPodsPerNode)
	}
	return needs
}

func (s *Stack) checkExistingCluster(p *check.Problems) {
	at, c := field.NewPath(clusterKey), s.Cluster
	p.Name(at.Child("name"), c.Name, validation.IsDNS1035Label)
	check.OnlyFields(p, at, c, "of an existing cluster", "name", "existing", "replace")
	existing := at.Child("existing")
	if c.Existing.Kubeconfig == "" && c.Existing.Context == "" {
		p.Required(existing.Child("context"), "write a context of your kubeconfig, as `kubectl config get-contexts` lists them, or kubeconfig with the path of one")
	}
	if k := c.Existing.Kubeconfig; k != "" && !path.IsAbs(k) {
		p.Invalid(existing.Child("kubeconfig"), k, "must be the absolute path of a kubeconfig file, because Pulumi runs programs in other directories")
	}
	s.checkPool(p, existing.Child("systemPool"), c.Existing.SystemPool, s.poolNames())
	if s.Project != "" {
		p.Invalid(field.NewPath(projectKey), s.Project, "is not used, because the stack creates nothing in Google Cloud on an existing cluster; remove it")
	}
	for i, pool := range s.NodePools {
		check.OnlyFields(p, field.NewPath(nodePoolsKey).Index(i), pool, "of an existing pool",
			"name", "machineType", "nodes", "autoscaling", "spareNodes", "spot", "gpu", "maxPodsPerNode", "taints")
	}
}

// checkSystemPool checks the system pool of a cluster that the stack creates.
func (s *Stack) checkSystemPool(p *check.Problems) {
	path, pool := field.NewPath(clusterKey, "systemPool"), s.Cluster.SystemPool
	machineType := path.Child("machineType")
	switch m, ok := s.MachineTypes.Check(p, machineType, pool.MachineType); {
	case ok && m.GPUs > 0:
		p.Invalid(machineType, m.Type, "has GPUs, which nothing in the system pool uses; write a type without GPUs, like e2-standard-4")
	case ok && m.Arm():
		s.checkArm(p, machineType, m.Type, "the cluster's services", m.Type)
	case ok && !slices.Contains(m.BootDisks(), gcp.PDBalanced):
		p.Invalid(machineType, m.Type, "does not support pd-balanced, the boot disk type of the system pool; write a type that does, like e2-standard-4")
	}
	if least := s.Cluster.LeastSystemNodes(); pool.Nodes < least {
		p.Invalid(path.Child("nodes"), pool.Nodes, "must be at least %d, so that the cluster's own services survive the loss of a node; only a cluster with deletionProtection: false can have 1", least)
		return
	}
	poolspec.CheckSpread(p, path.Child("nodes"), pool.Nodes, s.systemPool().ZoneCount())
}

// warnOfExposure warns when a stack file turns off what keeps pods apart.
func (s *Stack) warnOfExposure(p *check.Problems) {
	cluster := field.NewPath(clusterKey)
	if s.Cluster.Existing == nil && !s.Cluster.DataplaneV2 {
		p.Warn(cluster.Child("dataplaneV2"), "without it, GKE does not enforce network policies, and every pod in the cluster can reach NATS, the metrics gateways, and PEDL; give NATS users")
	}
	if s.Cluster.Existing == nil && !s.Cluster.WorkloadIdentity {
		p.Warn(cluster.Child("workloadIdentity"), "without it, every pod can get the token of its node's service account from the metadata server, with the permissions of nodes")
	}
	if s.NATS.OperatorScope == natsspec.ScopeCluster {
		p.Warn(field.NewPath(natsKey, "operatorScope"), "the NATS operator can read Secrets and create pods in all namespaces, so anyone who takes it over is effectively a cluster administrator; write namespace unless you have NatsClusters in other namespaces")
	}
}
