package capacity

import (
	"slices"

	"persia/gcp"
)

// Pods is a group of identical pods.
type Pods struct {
	Name  string
	Count int
	// Requests is what one pod asks for.
	Requests Resources
	// Priority is the value of their PriorityClass. A pod can evict pods of lower priority.
	Priority int
	// Apart keeps any two of them from one node, as required anti-affinity does.
	Apart bool
}

// Pool is a node pool, with the pods that are assigned to it and no others.
type Pool struct {
	Name string
	// Machine is the pool's, with the GPUs attached to it.
	Machine gcp.Machine
	Spot    bool
	// Node is the room for pods on one node: its allocatable resources less what the pods of DaemonSets ask for.
	Node Resources
	// Nodes is the number of nodes that the pool may have.
	Nodes int
	// Spare is the number of nodes that are left to the pods of lost nodes.
	Spare   int
	Pods    []Pods
	Upgrade Upgrade
	// Rungs are the pools of a list, if this pool stands for one. Machine is then that of the first.
	Rungs []Rung
	// Queued is true if a queue may admit more jobs to the pool than those whose replicas are in Pods.
	Queued bool
}

// Rung is a pool of a list: the room on its nodes, and how many it has at least and at most.
type Rung struct {
	Machine     gcp.Machine
	Spot        bool
	Node        Resources
	Least, Most int
}

// shapes returns the room on each kind of node that the pool may have. A larger node can be worse than a smaller one, because
// it takes pods that leave no room there for others.
func (p Pool) shapes() []Resources {
	if len(p.Rungs) < 2 {
		return []Resources{p.Node}
	}
	var shapes []Resources
	for _, rung := range p.Rungs {
		if !slices.Contains(shapes, rung.Node) {
			shapes = append(shapes, rung.Node)
		}
	}
	return shapes
}

// And returns the upgrade of two pools, one after the other.
func (u Upgrade) And(other Upgrade) Upgrade {
	return Upgrade{Additional: max(u.Additional, other.Additional), Unavailable: max(u.Unavailable, other.Unavailable),
		Rounds: u.Rounds + other.Rounds, Jobs: other.Jobs}
}

// Upgrade describes how GKE upgrades all nodes of a pool: what it adds, and what it interrupts.
type Upgrade struct {
	// Additional is the number of nodes that the pool has at the same time beyond its own,
	// and Unavailable the number that it lacks.
	Additional, Unavailable int
	// Rounds is how many times GKE drains nodes until it has upgraded all of them.
	Rounds int
	// Jobs are the names of the jobs with replicas on the pool. Each round ends their attempts.
	Jobs []string
}

// Holds returns how many of the pods find room on an empty node.
func (p Pool) Holds(pods Pods) int {
	if pods.Apart {
		return min(1, fit(p.Node, pods.Requests))
	}
	return fit(p.Node, pods.Requests)
}

// fit returns how many times a request fits on a node.
func fit(node, request Resources) int {
	times := node.Pods
	for _, d := range dimensions {
		if asks := d.amount(request); asks > 0 {
			times = min(times, max(0, d.amount(node))/asks)
		}
	}
	return int(times)
}

// Needed returns the least number of nodes on which every pod finds room, in whatever order the pods come and wherever
// the scheduler puts each of them. A good packing is not enough, because the scheduler does not pack.
//
// A pod stays pending only if it fits no node beside the pods that it cannot evict: pods of its own
// priority or a higher one. So for each kind of pod, Needed packs the pods that outrank it so that
// they block as many nodes as they can, and adds one node. Every pod must fit an empty node.
func (p Pool) Needed() int {
	needed := 0
	for i := range p.Pods {
		needed = max(needed, 1+p.mostBlocked(i))
	}
	return needed
}

// mostBlocked returns the largest number of nodes that the other pods can fill until a pod of kind
// i fits none of them, or one node more.
func (p Pool) mostBlocked(i int) int {
	var others []Pods
	for j, pods := range p.Pods {
		if j == i {
			pods.Count--
		}
		if pods.Count > 0 && pods.Priority >= p.Pods[i].Priority {
			others = append(others, pods)
		}
	}
	return newBlocking(p.shapes(), p.Pods[i], merge(others)).most()
}

// merge merges kinds that the scheduler cannot tell apart.
func merge(kinds []Pods) []Pods {
	var merged []Pods
	for _, pods := range kinds {
		same := slices.IndexFunc(merged, func(m Pods) bool {
			return m.Requests == pods.Requests && !m.Apart && !pods.Apart
		})
		if same < 0 {
			merged = append(merged, pods)
			continue
		}
		merged[same].Count += pods.Count
	}
	return merged
}
