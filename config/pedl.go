package config

import (
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
		}
	}
	s.checkAgentsAlone(p)
}

// checkServiceAddress refuses an address that the cluster cannot give to a Service.
func (s *Stack) checkServiceAddress(p *check.Problems, path *field.Path, written string) {
	address, err := netip.ParseAddr(written)
	services, bad := netip.ParsePrefix(s.Cluster.Network.Services)
	if err == nil && bad == nil && !services.Contains(address) {
		p.Invalid(path, written, "must be in %s, the range of %s.network.services", services, clusterKey)
	}
}

// checkAgentPools refuses pools whose nodes come and go: Kubernetes does not see trials.
func (s *Stack) checkAgentPools(p *check.Problems, path *field.Path, names []string) {
	for i, name := range names {
		pool, ok := s.checkPool(p, path.Index(i), name, s.poolNames())
		if !ok {
			continue
		}
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

func (s *Stack) pedlWarnings() []string {
	if s.PEDL == nil {
		return nil
	}
	path := field.NewPath(pedlKey)
	warnings := s.PEDL.Warnings(path)
	for _, pool := range s.NodePools {
		if pool.ImageType == "" {
			continue
		}
		const noDocker = "nodes with %s have containerd and no Docker, so that /var/run/docker.sock is missing"
		if slices.Contains(s.PEDL.Agent.NodePools, pool.Name) {
			warnings = append(warnings, s.warning(path.Child("agent", "nodePools"), noDocker+": the agents of pool %s wait until you have installed it", pool.ImageType, pool.Name))
		}
		if check := s.PEDL.SupportCheck; check != nil && check.NodePool == pool.Name {
			warnings = append(warnings, s.warning(path.Child("supportCheck", "nodePool"), noDocker+": the check of pool %s fails unless you have installed it", pool.ImageType, pool.Name))
		}
	}
	slices.Sort(warnings)
	return warnings
}
