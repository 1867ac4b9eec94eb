package config

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

// checkPEDL checks PEDL, and that its pods fit the nodes of their pools.
func (s *Stack) checkPEDL(p *input.Problems) {
	path, pedl := field.NewPath(pedlKey), s.PEDL
	if pedl == nil {
		return
	}
	const example = "determinedai/pedl-master:0.9.0"
	checkImage(p, path.Child("masterImage"), pedl.MasterImage, example)
	checkImage(p, path.Child("agentImage"), pedl.AgentImage, example)
	service := pedl.Service
	// The annotation of GKE, and its name in older releases.
	internal := service.Annotations["networking.gke.io/load-balancer-type"] == "Internal" || service.Annotations["cloud.google.com/load-balancer-type"] == "Internal"
	if service.Type == corev1.ServiceTypeLoadBalancer && len(service.LoadBalancerSourceRanges) == 0 && !internal {
		p.Required(path.Child("service", "loadBalancerSourceRanges"), "write the networks of PEDL's users, like 203.0.113.0/24, because a load balancer admits everyone by default, and anyone who can reach the master can run containers on the nodes of its agents; or give the service the annotation networking.gke.io/load-balancer-type: Internal")
	}
	pedl.Postgres.check(p, path.Child("postgresql"), pedl.NodePool, s)
	s.checkAssignment(p, path.Child("resources"), path.Child("nodePool"), "the master of PEDL", pedl.NodePool, pedl.Resources, append(s.poolNames(), s.SystemPoolName()), false)
	s.checkAgents(p, path.Child("agent"), pedl.Agent)
	if pedl.SupportCheck != nil {
		at := path.Child("supportCheck", "nodePool")
		if pool, ok := s.checkPool(p, at, pedl.SupportCheck.NodePool, s.poolNames(), false); ok && pool.GPU == nil {
			p.Invalid(at, pool.Name, "has no GPUs, which the check requires; choose a GPU pool")
		}
	}
}

// checkAgents checks the agents. It refuses pools whose nodes come and go: Kubernetes does not see trials.
func (s *Stack) checkAgents(p *input.Problems, path *field.Path, agent PEDLAgent) {
	checkEnvVars(p, path.Child("env"), agent.Env)
	checkResources(p, path.Child("resources"), "an agent of PEDL", agent.Resources)
	pools := path.Child("nodePools")
	if s.existing() {
		if len(agent.NodePools) > 0 {
			p.Forbidden(pools, "the stack does not change the node pools of an existing cluster; remove it, and label the nodes with kubectl label nodes -l %s=POOL %s=%s", gcp.LabelNodePool, PEDLAgentTaint.Key, PEDLAgentTaint.Value)
		}
		return
	}
	for i, name := range agent.NodePools {
		pool, ok := s.checkPool(p, pools.Index(i), name, s.poolNames(), false)
		if !ok {
			continue
		}
		if use := s.poolUses()[name]; use.roles || use.others {
			p.Invalid(pools.Index(i), name, "is also the nodePool of other pods of the stack, but agents expect to have its nodes to themselves; choose another pool here, or there")
		}
		if pool.Autoscaling != nil {
			p.Invalid(pools.Index(i), name, "has autoscaling, which does not know about PEDL's trials: it adds no nodes for them, and removes nodes that run them; set nodes instead")
		}
	}
	for name, use := range s.poolUses() {
		if pool, ok := s.Pool(name); ok && s.hostsAgents(pool) && !slices.Contains(agent.NodePools, name) && (use.roles || use.others) {
			p.Invalid(s.PoolPath(name).Child("labels"), name, "has the label of PEDL's agents, which expect to have its nodes to themselves, and is the nodePool of other pods; remove the label, or choose another pool for them")
		}
	}
}

// warnOfPEDL warns of a database that may be lost.
func (s *Stack) warnOfPEDL(p *input.Problems) {
	if s.PEDL == nil || s.PEDL.Postgres.External != nil {
		return
	}
	at, persistence := field.NewPath(pedlKey, "postgresql", "persistence"), s.PEDL.Postgres.Persistence
	if !persistence.Enabled {
		p.Warn(at.Child("enabled"), "the database is lost when its pod is deleted")
	}
	if class := persistence.StorageClass; class != "" {
		p.Warn(at.Child("storageClass"), "the storage class %s determines what happens to the database when its claim is deleted. `pulumi destroy` keeps the claim, but deleting the cluster deletes it", class)
	}
}

// PEDLDatabase returns the volume of PEDL's database, and whether it is a volume of the stack.
func (s *Stack) PEDLDatabase() (Volume, bool) {
	if s.PEDL == nil || s.PEDL.Postgres.External != nil {
		return Volume{}, false
	}
	data := s.PEDL.Postgres.Persistence
	return data.volume(), data.Enabled && data.Source() != nil
}
