package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
	"persia/gcp"
)

// A role may name several node pools, best first. Job and Role have them as one name, with commas, and Stack.Pool makes one
// pool of them: the capacity plan, the queues, and the rules see a pool whose node is as small as the smallest of the list.
// In the cluster, a compute class has GKE try them in this order (GKE, "About custom compute classes"). GKE documents no compute
// classes for pools with queued provisioning, so the provisioner asks for their nodes in this order.

// poolsIn returns the names in the nodePool of a role.
func poolsIn(nodePool string) []string { return strings.Split(nodePool, ",") }

// isList reports whether the nodePool of a role is a list.
func isList(nodePool string) bool { return strings.Contains(nodePool, ",") }

// ListLabel returns the label that the nodes of a list have, and its pods select, or "" if no role names the pool in a list. The
// first pool gives the value, so that one more pool at the end changes nothing that runs.
func (p Pool) ListLabel() (key, value string) {
	switch {
	case p.list == "":
		return "", ""
	case p.QueuedProvisioning:
		return PoolsLabel, p.list
	}
	return gcp.LabelComputeClass, p.list
}

// Listed returns the pools of a list, best first, or the pool itself.
func (p Pool) Listed() []Pool {
	if len(p.listed) > 0 {
		return p.listed
	}
	return []Pool{p}
}

// asOne returns a list of pools as one pool.
func asOne(name string, listed []Pool) Pool {
	one := listed[0]
	one.Name, one.listed, one.Nodes, one.Autoscaling, one.SpareNodes = name, listed, nil, &Autoscaling{}, 0
	one.Zones, one.Taints = nil, nil
	for _, pool := range listed {
		one.Autoscaling.MinNodes += pool.leastNodes()
		one.Autoscaling.MaxNodes += pool.MostNodes()
		one.SpareNodes += pool.SpareNodes
		one.Spot = one.Spot || pool.Spot
		one.Zones = append(one.Zones, pool.Zones...)
		for _, taint := range pool.Taints {
			if !slices.Contains(one.Taints, taint) {
				one.Taints = append(one.Taints, taint)
			}
		}
	}
	slices.Sort(one.Zones)
	one.Zones = slices.Compact(one.Zones)
	return one
}

// leastNodes returns the minimum number of nodes of a pool.
func (p Pool) leastNodes() int {
	if p.Autoscaling != nil {
		return p.Autoscaling.MinNodes
	}
	return p.MostNodes()
}

// poolLists returns the lists of pools that roles name.
func (s *Stack) poolLists() []string {
	var lists []string
	for i := range s.Jobs {
		for _, role := range s.Jobs[i].Roles() {
			if isList(role.NodePool) && !slices.Contains(lists, role.NodePool) {
				lists = append(lists, role.NodePool)
			}
		}
	}
	return lists
}

// resolveLists notes which pools belong to a list.
func (s *Stack) resolveLists() {
	for _, list := range s.poolLists() {
		for i := range s.NodePools {
			if pool := &s.NodePools[i]; slices.Contains(poolsIn(list), pool.Name) {
				pool.list = "persia-" + poolsIn(list)[0]
			}
		}
	}
}

// PoolLists returns each list of pools that roles name, as one pool.
func (s *Stack) PoolLists() []Pool {
	var pools []Pool
	for _, list := range s.poolLists() {
		if pool, known := s.Pool(list); known {
			pools = append(pools, pool)
		}
	}
	return pools
}

// places returns what pods are assigned to: the pools that are in no list, and then the lists.
func (s *Stack) places() []Pool {
	alone := slices.DeleteFunc(slices.Clone(s.Pools()), func(p Pool) bool { return p.list != "" })
	return slices.Concat(alone, s.PoolLists())
}

// checkPoolList checks that replicas of a role notice no difference between the pools of its list.
func (s *Stack) checkPoolList(p *input.Problems, at *field.Path, job *Job, role NamedRole, uses map[string]*poolUse) {
	names := poolsIn(role.NodePool)
	first, firstKnown := s.Pool(names[0])
	_, written := s.Pool(role.NodePool)
	written = written && sets.New(names...).Len() == len(names) // so that others can write the same list
	for i, name := range names {
		pool, known := s.Pool(name)
		at := at.Index(i)
		gpus := func(of Pool) string {
			if of.GPU == nil {
				return "no GPUs"
			}
			return fmt.Sprintf("%d × %s", of.GPU.Count, of.GPU.Type)
		}
		others := slices.DeleteFunc(slices.Clone(uses[name].as), func(as string) bool { return as == role.NodePool })
		switch {
		case !known: // reported already
		case slices.Contains(names[:i], name):
			p.Invalid(at, name, "is twice in the list; remove one")
		case job.Engine == EngineOperator:
			p.Invalid(at, name, "cannot be in a list: PERSIA's operator lets no pod choose its nodes; write one pool, or another engine")
		case firstKnown && pool.QueuedProvisioning != first.QueuedProvisioning:
			p.Invalid(at, name, "cannot be in a list with %s, because GKE adds nodes to pools with queuedProvisioning only on request, and "+
				"to others by itself; write pools that all have queuedProvisioning, or none that has", names[0])
		case firstKnown && gpus(pool) != gpus(first):
			p.Invalid(at, name, "has %s, and %s has %s: a replica would train differently on each; write pools with the same GPUs",
				gpus(pool), names[0], gpus(first))
		case written && len(others) > 0:
			p.Invalid(at, name, "is also used as nodePool: %s, and the nodes of a list keep all other pods off; "+
				"choose another pool, or write [%s] in all roles that use it", others[0], strings.Join(names, ", "))
		}
	}
}

// warnOfPoolLists warns of nn-workers in several zones.
func (s *Stack) warnOfPoolLists(p *input.Problems) {
	for i := range s.Jobs {
		j := &s.Jobs[i]
		pool, _ := s.Pool(j.NNWorker.NodePool)
		anywhere := slices.ContainsFunc(pool.listed, func(p Pool) bool { return len(p.Zones) == 0 && !s.existing() })
		if len(pool.listed) > 0 && (len(pool.Zones) > 1 || anywhere) && j.NNWorker.Replicas > 1 {
			p.Warn(j.At().Child("nnWorker", "nodePool"), "the nn-workers may be in several zones: Google bills 0.01 USD for each GiB between "+
				"two, and NCCL gets the network of the region instead of neighbouring machines; write pools of one zone")
		}
	}
}

// smallest returns the room on a node that every node of a list has.
func (s *Stack) smallest(listed []Pool) capacity.Resources {
	room := s.nodeRoom(listed[0])
	for _, pool := range listed[1:] {
		room = room.AtMost(s.nodeRoom(pool))
	}
	return room
}

// refuseList says why a list of pools does not hold its pods.
func (s *Stack) refuseList(p *input.Problems, plan capacity.PoolPlan) {
	list, _ := s.Pool(plan.Name)
	for _, pool := range list.listed {
		plan.Node = s.nodeRoom(pool)
		for _, pods := range plan.TooLarge {
			if plan.Holds(pods) == 0 {
				p.Invalid(s.PoolPath(pool.Name).Child("machineType"), pool.MachineType, "has too little room for a pod of %s, which may "+
					"run on each pool of [%s]; request less, or choose a larger machine type", pods.Name, strings.ReplaceAll(plan.Name, ",", ", "))
				return
			}
		}
	}
	last := list.listed[len(list.listed)-1]
	p.Instead(s.nodesPath(last.Name), last.MostNodes(), last.WholeZones(last.MostNodes()+plan.Needed-plan.Nodes),
		"the pools [%s] have %d nodes together, and need %d in the worst case", strings.ReplaceAll(plan.Name, ",", ", "), plan.Nodes, plan.Needed)
}
