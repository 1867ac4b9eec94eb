package config

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/pod"
	"persia/config/poolspec"
	"persia/gcp"
)

// SystemPoolName returns the name of the pool for everything except training: the cluster's
// own, or on an existing cluster the one that the stack file names.
func (s *Stack) SystemPoolName() string {
	if s.Cluster.Existing != nil {
		return s.Cluster.Existing.SystemPool
	}
	return poolspec.SystemName
}

// Pools returns all node pools of the cluster: the system pool, unless the cluster exists
// already, and the pools of the stack file.
func (s *Stack) Pools() []poolspec.Pool {
	if s.Cluster.Existing != nil {
		return s.NodePools
	}
	return append([]poolspec.Pool{s.systemPool()}, s.NodePools...)
}

// rolePoolsOnly returns the names of the pools on which roles of jobs run, but no NATS
// server and nothing of PEDL.
func (s *Stack) rolePoolsOnly() []string {
	others := []string{s.SystemPoolName()}
	for _, cluster := range s.NATSClusters() {
		others = append(others, cluster.NodePool)
	}
	if s.PEDL != nil {
		others = append(append(others, s.PEDL.NodePool), s.PEDL.Agent.NodePools...)
	}
	var pools []string
	for i := range s.Jobs {
		for _, role := range s.Jobs[i].Roles() {
			if !slices.Contains(others, role.NodePool) {
				pools = append(pools, role.NodePool)
			}
		}
	}
	return pools
}

// Pool returns the node pool with a name, and whether the cluster has one.
func (s *Stack) Pool(name string) (poolspec.Pool, bool) {
	pools := s.Pools()
	if i := slices.IndexFunc(pools, func(p poolspec.Pool) bool { return p.Name == name }); i >= 0 {
		return pools[i], true
	}
	return poolspec.Pool{}, false
}

// PoolPath returns the path of a pool in the stack file.
func (s *Stack) PoolPath(name string) *field.Path {
	i := slices.IndexFunc(s.NodePools, func(p poolspec.Pool) bool { return p.Name == name })
	if i < 0 {
		return field.NewPath(clusterKey, "systemPool")
	}
	return field.NewPath(nodePoolsKey).Index(i)
}

// systemPool returns the system pool of a cluster that the stack creates.
func (s *Stack) systemPool() poolspec.Pool {
	system := poolspec.New(poolspec.SystemName, s.Cluster.SystemPool.MachineType, s.Cluster.SystemPool.Nodes)
	system.Resolve(s.poolContext(), s.NVIDIADriver, s.MachineTypes)
	return system
}

func (s *Stack) poolContext() poolspec.Context {
	return poolspec.Context{Region: s.Cluster.Region, Zones: s.Cluster.Zones, Existing: s.Cluster.Existing != nil, RolesOnly: s.rolePoolsOnly()}
}

// poolNames returns the names of the stack file's pools, in its order.
func (s *Stack) poolNames() []string {
	return check.Words(s.NodePools, func(p poolspec.Pool) string { return p.Name })
}

// rolePools returns the names of the node pools that a role may name: the stack file's, or
// the system pool if the file has none.
func (s *Stack) rolePools() []string {
	if len(s.NodePools) == 0 {
		return []string{s.SystemPoolName()}
	}
	return s.poolNames()
}

// checkPool checks the name of a pool that pods are assigned to, and returns the pool.
func (s *Stack) checkPool(p *check.Problems, path *field.Path, name string, allowed []string) (poolspec.Pool, bool) {
	pool, ok := s.checkPoolOrQueued(p, path, name, allowed)
	if pool.QueuedProvisioning {
		p.Invalid(path, name, "has queuedProvisioning, which creates nodes only for pods with a ProvisioningRequest, and only nn-workers of a job with engine: jobset and queue have one; choose another pool, or remove queuedProvisioning")
		return poolspec.Pool{}, false
	}
	return pool, ok
}

// checkPoolOrQueued is [Stack.checkPool] for pods that may ask for nodes.
func (s *Stack) checkPoolOrQueued(p *check.Problems, path *field.Path, name string, allowed []string) (poolspec.Pool, bool) {
	pool, ok := s.Pool(name)
	switch {
	case ok && slices.Contains(allowed, name):
		return pool, true
	case !p.Decoded(field.NewPath(nodePoolsKey)):
	case len(allowed) == 0:
		p.Invalid(path, name, "must be a node pool, but the stack has none; add one in %s", nodePoolsKey)
	case name == "":
		p.Required(path, "write one of the stack's node pools: %s", check.Or(allowed))
	default:
		p.Invalid(path, name, "must be one of the stack's node pools: %s", check.Or(allowed))
	}
	return poolspec.Pool{}, false
}

// keepsOff returns the key of the taint that keeps pods without tolerations off a pool, or
// "". It leaves out the GPU taint: GKE adds the toleration to pods that request GPUs.
func keepsOff(pool poolspec.Pool) string {
	if pool.Spot {
		return gcp.TaintSpot
	}
	for _, taint := range pool.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule {
			return taint.Key
		}
	}
	return ""
}

// warnOfPools warns of pools and GPUs that nothing uses, and of machine types that no pool
// has. It leaves out existing clusters, whose pools others may use, and stacks without jobs,
// which may get some later.
func (s *Stack) warnOfPools(p *check.Problems) {
	if s.Cluster.Existing != nil || len(s.Jobs) == 0 {
		return
	}
	used, computes := map[string]bool{}, map[string]bool{}
	for _, c := range s.NATSClusters() {
		used[c.NodePool] = true
	}
	if s.PEDL != nil {
		used[s.PEDL.NodePool] = true
		for _, name := range s.PEDL.Agent.NodePools {
			used[name], computes[name] = true, true
		}
		if check := s.PEDL.SupportCheck; check != nil {
			used[check.NodePool], computes[check.NodePool] = true, true
		}
	}
	for i := range s.Jobs {
		for _, role := range s.Jobs[i].Roles() {
			used[role.NodePool] = true
			computes[role.NodePool] = computes[role.NodePool] || pod.GPUs(role.Resources) > 0
		}
	}
	types := []string{s.Cluster.SystemPool.MachineType}
	for i, pool := range s.NodePools {
		types = append(types, pool.MachineType)
		switch at := field.NewPath(nodePoolsKey).Index(i); {
		case pool.QueuedProvisioning:
		case !used[pool.Name]:
			p.Warn(at, "nothing of the stack runs on the pool %s, whose nodes are billed; name it in nodePool of a role, or remove it", pool.Name)
		case pool.GPU != nil && !computes[pool.Name]:
			p.Warn(at, "no role on the pool %s requests its GPUs, which are billed; write %s in resources.limits of the role, or choose a machine type without GPUs", pool.Name, pod.GPU)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.MachineTypes)) {
		if s.MachineTypes[name].CPUs > 0 && !slices.Contains(types, name) {
			p.Warn(field.NewPath(MachineTypesKey).Key(name), "no pool has this machine type; write it in machineType of a pool, or remove it")
		}
	}
}
