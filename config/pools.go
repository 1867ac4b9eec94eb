package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/clusterspec"
	"persia/config/poolspec"
	"persia/gcp"
)

// SystemPoolName is the pool of everything that is not training: the cluster's
// own, or on an existing cluster one of the stack file's.
func (s *Stack) SystemPoolName() string {
	if s.Cluster.Existing != nil {
		return s.Cluster.Existing.SystemPool
	}
	return poolspec.SystemName
}

// Pools are all node pools of the cluster: its system pool, and those of the stack
// file.
func (s *Stack) Pools() []poolspec.Pool {
	if s.Cluster.Existing != nil {
		return s.NodePools
	}
	return append([]poolspec.Pool{s.systemPool()}, s.NodePools...)
}

// systemPool is the system pool of a cluster that is created.
func (s *Stack) systemPool() poolspec.Pool {
	system := poolspec.New(poolspec.SystemName, s.Cluster.SystemPool.MachineType, s.Cluster.SystemPool.Nodes)
	system.Resolve(s.poolContext(), s.NVIDIADriver, s.MachineTypes)
	return system
}

// poolContext is what node pools have to know of the cluster.
func (s *Stack) poolContext() poolspec.Context {
	return poolspec.Context{Region: s.Cluster.Region, Zones: s.Cluster.Zones, Existing: s.Cluster.Existing != nil}
}

// addresses is how many addresses all pools need when each is at its maximum.
func (s *Stack) addresses() clusterspec.Needs {
	var needs clusterspec.Needs
	for _, p := range s.Pools() {
		needs.Nodes += p.MostNodes()
		needs.PodAddresses += p.MostNodes() * capacity.PodAddresses(p.MaxPodsPerNode)
	}
	return needs
}

// Pool returns the node pool with a name, and whether the cluster has one.
func (s *Stack) Pool(name string) (poolspec.Pool, bool) {
	pools := s.Pools()
	if i := slices.IndexFunc(pools, func(p poolspec.Pool) bool { return p.Name == name }); i >= 0 {
		return pools[i], true
	}
	return poolspec.Pool{}, false
}

// poolNames are the names of the stack file's pools, in its order.
func (s *Stack) poolNames() []string {
	names := make([]string, len(s.NodePools))
	for i, p := range s.NodePools {
		names[i] = p.Name
	}
	return names
}

// systemPool checks the system pool of a cluster that is created.
func (v *validator) systemPool() {
	path, pool := field.NewPath(clusterKey, "systemPool"), v.stack.Cluster.SystemPool
	machineType := path.Child("machineType")
	switch m, ok := v.stack.MachineTypes.Check(v.Problems, machineType, pool.MachineType); {
	case ok && m.GPUs > 0:
		v.Invalid(machineType, m.Type, "has GPUs, which nothing in the system pool uses; write a type without GPUs, like e2-standard-4")
	case ok && !slices.Contains(m.BootDisks(), gcp.PDBalanced):
		v.Invalid(machineType, m.Type, "does not support pd-balanced, the boot disk type of the system pool; write a type that does, like e2-standard-4")
	}
	if least := v.stack.Cluster.LeastSystemNodes(); pool.Nodes < least {
		v.Invalid(path.Child("nodes"), pool.Nodes, "must be at least %d, so that the cluster's own services survive the loss of a node; only a cluster with deletionProtection: false can have 1", least)
		return
	}
	poolspec.CheckSpread(v.Problems, path.Child("nodes"), pool.Nodes, v.stack.systemPool().ZoneCount())
}
