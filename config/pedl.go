package config

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/pedlspec"
	"persia/config/pod"
	"persia/config/poolspec"
	"persia/config/volumespec"
)

// pedlContext is what PEDL needs to know of the rest of the stack file.
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

// agentTaint is the taint of nodes that host PEDL's agents.
func agentTaint() poolspec.Taint {
	return poolspec.Taint{Key: pedlspec.AgentTaint.Key, Value: pedlspec.AgentTaint.Value, Effect: pedlspec.AgentTaint.Effect}
}

// hostAgents gives the pools of PEDL's agents the label that agents look for, and the
// taint that keeps others off. Pools that exist are not changed.
func (s resolver) hostAgents() {
	if s.PEDL == nil || s.Cluster.Existing != nil {
		return
	}
	taint := agentTaint()
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
func hostsAgents(s *Stack, pool poolspec.Pool) bool {
	return s.PEDL != nil && pool.Labels[pedlspec.AgentTaint.Key] == pedlspec.AgentTaint.Value
}

// pedl checks PEDL, and that its pods fit the nodes of their pools.
func (v *validator) pedl() {
	path, p := field.NewPath(pedlKey), v.stack.PEDL
	if p == nil {
		return
	}
	p.Check(v.Problems, path, v.stack.pedlContext())
	v.assignment(path, "the master of PEDL", p.NodePool, p.Resources, append(v.stack.poolNames(), v.stack.SystemPoolName()))
	if pool, ok := v.stack.Pool(p.NodePool); ok && p.Postgres.External == nil {
		v.fits(path.Child("postgresql", "resources"), pedlspec.DatabaseName, p.Postgres.Resources, pool)
	}
	if v.stack.Cluster.Existing == nil {
		v.agentPools(path.Child("agent", "nodePools"), p.Agent.NodePools)
		v.serviceAddress(path.Child("service", "clusterIP"), p.Service.ClusterIP)
	}
	if p.SupportCheck != nil {
		at := path.Child("supportCheck", "nodePool")
		if pool, ok := v.assignedPool(at, p.SupportCheck.NodePool, v.stack.poolNames()); ok && pool.GPU == nil {
			v.Invalid(at, pool.Name, "has no GPUs, which the check requires; choose a GPU pool")
		}
	}
	v.wholeNodes()
}

// serviceAddress refuses an address that the cluster cannot give to a Service.
func (v *validator) serviceAddress(path *field.Path, written string) {
	address, err := netip.ParseAddr(written)
	services, bad := netip.ParsePrefix(v.stack.Cluster.Network.Services)
	if err == nil && bad == nil && !services.Contains(address) {
		v.Invalid(path, written, "must be in %s, the range of %s.network.services", services, clusterKey)
	}
}

// agentPools refuses pools that a trial would not keep: Kubernetes does not see it.
func (v *validator) agentPools(path *field.Path, names []string) {
	for i, name := range names {
		pool, ok := v.assignedPool(path.Index(i), name, v.stack.poolNames())
		if !ok {
			continue
		}
		if pool.Autoscaling != nil {
			v.Invalid(path.Index(i), name, "has autoscaling, which does not know about PEDL's trials: it adds no nodes for them, and removes nodes that run them; set nodes instead")
		}
		if value := pool.Labels[pedlspec.AgentTaint.Key]; value != pedlspec.AgentTaint.Value {
			v.Invalid(path.Index(i), name, "has the label %s=%s, but agents select nodes by %s; remove the label from the pool", pedlspec.AgentTaint.Key, value, pedlspec.AgentTaint.Value)
		}
	}
}

// wholeNodes keeps everything else off nodes with agents.
func (v *validator) wholeNodes() {
	const taken = "hosts PEDL agents, which expect to have its nodes to themselves; choose another pool, or remove this one from " + pedlKey + ".agent.nodePools"
	check := func(path *field.Path, name string) {
		if pool, ok := v.stack.Pool(name); ok && hostsAgents(v.stack, pool) {
			v.Invalid(path.Child("nodePool"), name, taken)
		}
	}
	check(field.NewPath(pedlKey), v.stack.PEDL.NodePool)
	check(field.NewPath(natsKey), v.stack.NATS.NodePool)
	for i := range v.stack.Jobs {
		job := &v.stack.Jobs[i]
		check(job.At().Child("nats"), job.NATS.NodePool)
		for _, role := range job.Roles() {
			check(job.At().Child(role.Field), role.NodePool)
		}
	}
}

// PEDLDatabase is the volume of PEDL's database, if it is one of the stack's.
func (s *Stack) PEDLDatabase() (volumespec.Volume, bool) {
	if s.PEDL == nil {
		return volumespec.Volume{}, false
	}
	return s.PEDL.Postgres.Volume()
}

// pedlPods are PEDL's pods that are assigned to a pool. Agents are counted with each
// node.
func (s planner) pedlPods(pool string) []capacity.Pods {
	var pods []capacity.Pods
	if s.PEDL == nil {
		return nil
	}
	if s.PEDL.NodePool == pool {
		pods = append(pods, capacity.Pods{Name: "PEDL master", Count: 1, Requests: pod.Requests(s.PEDL.Resources)})
		if s.PEDL.Postgres.External == nil {
			pods = append(pods, capacity.Pods{Name: "PEDL database", Count: 1, Requests: pod.Requests(s.PEDL.Postgres.Resources)})
		}
	}
	if check := s.PEDL.SupportCheck; check != nil && check.NodePool == pool {
		pods = append(pods, capacity.Pods{Name: "PEDL support check", Count: 1, Requests: capacity.PEDLSupportCheck})
	}
	return pods
}

// pedlWarnings are what a valid stack may not have meant of PEDL.
func (s warner) pedlWarnings() []string {
	if s.PEDL == nil {
		return nil
	}
	path := field.NewPath(pedlKey)
	warnings := s.PEDL.Warnings(path)
	warn := func(path *field.Path, format string, args ...any) {
		warnings = append(warnings, path.String()+": "+fmt.Sprintf(format, args...))
	}
	for _, pool := range s.NodePools {
		if pool.ImageType == "" {
			continue
		}
		const noDocker = "nodes with %s have containerd and no Docker, so that /var/run/docker.sock is missing"
		if slices.Contains(s.PEDL.Agent.NodePools, pool.Name) {
			warn(path.Child("agent", "nodePools"), noDocker+": the agents of pool %s wait until you have installed it", pool.ImageType, pool.Name)
		}
		if check := s.PEDL.SupportCheck; check != nil && check.NodePool == pool.Name {
			warn(path.Child("supportCheck", "nodePool"), noDocker+": the check of pool %s fails unless you have installed it", pool.ImageType, pool.Name)
		}
	}
	slices.Sort(warnings)
	return warnings
}
