package config

import (
	"maps"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/pedlspec"
	"persia/config/poolspec"
	"persia/config/volumespec"
)

func (s *Stack) pedlContext() pedlspec.Context {
	return pedlspec.Context{
		Cluster:    s.Cluster.Name,
		SystemPool: s.SystemPoolName(),
		Pool: func(name string) (volumespec.Pool, bool) {
			pool, ok := s.Pool(name)
			return s.volumePool(pool), ok
		},
		Storage:     s.volumeContext(),
		Volumes:     s.Storage,
		VolumesPath: field.NewPath(storageKey),
	}
}

// labelAgentPools gives the pools of PEDL's agents the label that agents select nodes by,
// and the taint that keeps other pods off. It leaves existing pools alone.
func (s *Stack) labelAgentPools() {
	if s.PEDL == nil || s.Cluster.Existing != nil {
		return
	}
	taint := poolspec.Taint{Key: pedlspec.AgentTaint.Key, Value: pedlspec.AgentTaint.Value, Effect: pedlspec.AgentTaint.Effect}
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		if !slices.Contains(s.PEDL.Agent.NodePools, pool.Name) {
			continue
		}
		if pool.Labels == nil {
			pool.Labels = map[string]string{}
		}
		if _, written := pool.Labels[taint.Key]; !written {
			pool.Labels[taint.Key] = taint.Value
		}
		if !slices.Contains(pool.Taints, taint) {
			pool.Taints = append(pool.Taints, taint)
		}
	}
}

// hostsAgents reports whether agents run on the nodes of a pool.
func (s *Stack) hostsAgents(pool poolspec.Pool) bool {
	return s.PEDL != nil && pool.Labels[pedlspec.AgentTaint.Key] == pedlspec.AgentTaint.Value
}

// checkPEDL checks PEDL, and that its pods fit the nodes of their pools.
func (s *Stack) checkPEDL(p *check.Problems) {
	path, pedl := field.NewPath(pedlKey), s.PEDL
	if pedl == nil {
		return
	}
	pedl.Check(p, path, s.pedlContext())
	s.checkAssignment(p, path, "the master of PEDL", pedl.NodePool, pedl.Resources, append(s.poolNames(), s.SystemPoolName()))
	if pool, ok := s.Pool(pedl.NodePool); ok && pedl.Postgres.External == nil {
		s.checkRoom(p, path.Child("postgresql", "resources"), pedlspec.DatabaseName, pedl.Postgres.Resources, pool)
	}
	if s.Cluster.Existing == nil {
		s.checkAgentPools(p, path.Child("agent", "nodePools"), pedl.Agent.NodePools)
		s.checkServiceAddress(p, path.Child("service", "clusterIP"), pedl.Service.ClusterIP)
	}
	if pedl.SupportCheck != nil {
		at := path.Child("supportCheck", "nodePool")
		if pool, ok := s.checkPool(p, at, pedl.SupportCheck.NodePool, s.poolNames()); ok && pool.GPU == nil {
			p.Invalid(at, pool.Name, "has no GPUs, which the check requires; choose a GPU pool")
		} else if ok {
			s.checkArm(p, at, pool.Name, "the check", pool.MachineType)
		}
	}
	s.checkAgentsAlone(p)
	s.warnOfNodeSelector(p, path.Child("nodeSelector"))
}

// warnOfNodeSelector warns of labels that no node of the master's pool has. GKE gives nodes
// more labels, in domains of its own.
func (s *Stack) warnOfNodeSelector(p *check.Problems, path *field.Path) {
	pool, ok := s.Pool(s.PEDL.NodePool)
	if !ok || s.Cluster.Existing != nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(s.PEDL.NodeSelector)) {
		value, labelled := pool.Labels[key]
		if own := poolspec.ReservedDomain(key) == "" && key != poolspec.OwnLabel; own && (!labelled || value != s.PEDL.NodeSelector[key]) {
			p.Warn(path.Key(key), "no node of pool %s has the label %s=%s, so the master waits for one; write the label in labels of a pool, or remove it", pool.Name, key, s.PEDL.NodeSelector[key])
		}
	}
}

// checkServiceAddress refuses an address that the cluster cannot give to a Service.
func (s *Stack) checkServiceAddress(p *check.Problems, path *field.Path, written string) {
	address, err := netip.ParseAddr(written)
	services, bad := netip.ParsePrefix(s.Cluster.Network.Services)
	switch {
	case err != nil || bad != nil:
	case !services.Contains(address):
		p.Invalid(path, written, "must be in %s, the range of %s.network.services", services, clusterKey)
	case address == services.Addr() || address == services.Addr().Next():
		p.Invalid(path, written, "is taken: the first address of %s is the range's own, and the second is the Service of the Kubernetes API; write another, or omit it", services)
	}
}

// checkAgentPools refuses pools whose nodes come and go: Kubernetes does not see trials.
func (s *Stack) checkAgentPools(p *check.Problems, path *field.Path, names []string) {
	for i, name := range names {
		pool, ok := s.checkPool(p, path.Index(i), name, s.poolNames())
		if !ok {
			continue
		}
		s.checkArm(p, path.Index(i), name, "PEDL's agents", pool.MachineType)
		if pool.Autoscaling != nil {
			p.Invalid(path.Index(i), name, "has autoscaling, which does not know about PEDL's trials: it adds no nodes for them, and removes nodes that run them; set nodes instead")
		}
		if value := pool.Labels[pedlspec.AgentTaint.Key]; value != pedlspec.AgentTaint.Value {
			p.Invalid(path.Index(i), name, "has the label %s=%s, but agents select nodes by %s; remove the label from the pool", pedlspec.AgentTaint.Key, value, pedlspec.AgentTaint.Value)
		}
	}
}

// checkAgentsAlone refuses to assign other pods to nodes with agents.
func (s *Stack) checkAgentsAlone(p *check.Problems) {
	const taken = "hosts PEDL agents, which expect to have its nodes to themselves; choose another pool, or remove this one from " + pedlKey + ".agent.nodePools"
	check := func(path *field.Path, name string) {
		if pool, ok := s.Pool(name); ok && s.hostsAgents(pool) {
			p.Invalid(path.Child("nodePool"), name, taken)
		}
	}
	check(field.NewPath(pedlKey), s.PEDL.NodePool)
	check(field.NewPath(natsKey), s.NATS.NodePool)
	for i := range s.Jobs {
		job := &s.Jobs[i]
		check(job.At().Child("nats"), job.NATS.NodePool)
		for _, role := range job.Roles() {
			check(job.At().Child(role.Field), role.NodePool)
		}
	}
}

// PEDLDatabase returns the volume of PEDL's database, and whether it is a volume of the
// stack.
func (s *Stack) PEDLDatabase() (volumespec.Volume, bool) {
	if s.PEDL == nil {
		return volumespec.Volume{}, false
	}
	return s.PEDL.Postgres.Volume()
}

func (s *Stack) warnOfPEDL(p *check.Problems) {
	if s.PEDL == nil {
		return
	}
	path := field.NewPath(pedlKey)
	s.PEDL.Warn(p, path)
	for _, pool := range s.NodePools {
		if pool.ImageType == "" {
			continue
		}
		const noDocker = "nodes with %s have containerd and no Docker, so that /var/run/docker.sock is missing"
		if slices.Contains(s.PEDL.Agent.NodePools, pool.Name) {
			p.Warn(path.Child("agent", "nodePools"), noDocker+": the agents of pool %s wait until you have installed it", pool.ImageType, pool.Name)
		}
		if check := s.PEDL.SupportCheck; check != nil && check.NodePool == pool.Name {
			p.Warn(path.Child("supportCheck", "nodePool"), noDocker+": the check of pool %s fails unless you have installed it", pool.ImageType, pool.Name)
		}
	}
}
