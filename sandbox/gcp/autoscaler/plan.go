package autoscaler

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	scheduling "k8s.io/component-helpers/scheduling/corev1"

	"persia/sandbox/gcp/gke"
)

// snapshot is the state of the cluster.
type snapshot struct {
	pools      []gke.Pool
	nodes      []*corev1.Node
	pods       []*corev1.Pod
	daemonSets []*appsv1.DaemonSet
	stocks     map[string]Stock
	classes    map[string][]string
	// short are the pools that are asked for no machines now.
	short map[string]time.Time
}

// plan is the placement of the running pods, and of those that wait.
type plan struct {
	snapshot
	rooms  []*room
	failed []failure
}

func newPlan(s snapshot) *plan {
	p := &plan{snapshot: s}
	bound, waiting := sortOut(s)
	for _, node := range s.nodes {
		p.rooms = append(p.rooms, p.newRoom(node, bound[node.Name]))
	}
	for _, demand := range waiting {
		p.assign(demand)
	}
	return p
}

// sortOut returns the pods on nodes, by node name, and the pods that wait for one. Pods of the highest
// priority come first, as with the scheduler, and among them the largest, which then need fewer nodes.
func sortOut(s snapshot) (bound map[string][]*corev1.Pod, waiting []demand) {
	bound = map[string][]*corev1.Pod{}
	for _, node := range s.nodes {
		bound[node.Name] = nil
	}
	for _, pod := range s.pods {
		// Others are on their way out to make room for a nominated pod.
		name := cmp.Or(pod.Spec.NodeName, pod.Status.NominatedNodeName)
		_, exists := bound[name]
		switch {
		case finished(pod):
		case exists:
			bound[name] = append(bound[name], pod)
		case waits(pod):
			waiting = append(waiting, newDemand(pod))
		}
	}
	slices.SortFunc(waiting, func(a, b demand) int {
		return cmp.Or(
			cmp.Compare(scheduling.PodPriority(b.pod), scheduling.PodPriority(a.pod)),
			b.requests.Cpu().Cmp(*a.requests.Cpu()),
			b.requests.Memory().Cmp(*a.requests.Memory()),
			strings.Compare(a.pod.Namespace, b.pod.Namespace),
			strings.Compare(a.pod.Name, b.pod.Name),
		)
	})
	return bound, waiting
}

// newRoom returns the resources of a node that remain after the requests of its pods and of the pods of DaemonSets.
func (p *plan) newRoom(node *corev1.Node, pods []*corev1.Pod) *room {
	room := &room{node: node, free: node.Status.Allocatable.DeepCopy()}
	running := map[types.UID]bool{}
	for _, pod := range pods {
		room.take(newDemand(pod))
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			running[owner.UID] = true
		}
	}
	for _, set := range p.daemonSets {
		if demand := daemonOf(set); !running[set.UID] && demand.matches(node) {
			room.take(demand)
		}
	}
	return room
}

// assign places a pod, on a new node if no other has room.
func (p *plan) assign(d demand) {
	for _, room := range p.rooms {
		if room.fits(d) {
			room.take(d)
			return
		}
	}
	for _, pool := range p.poolsFor(d) {
		nodes := p.nodesOf(pool, false)
		if pool.Queued() || len(nodes) >= pool.Max() || !p.short[pool.Name()].IsZero() {
			continue
		}
		for _, node := range pool.Next(nodes) {
			room := p.newRoom(node, nil)
			if !room.fits(d) {
				continue
			}
			if len(nodes) >= p.limit(pool) {
				// The autoscaler sees that only when Compute Engine has answered, and tries the next pool then.
				p.failed = append(p.failed, failure{d.pod, pool, len(nodes), node})
				return
			}
			room.planned = true
			room.take(d)
			p.rooms = append(p.rooms, room)
			return
		}
	}
}

// nodesOf returns the nodes that a pool has, and the nodes planned for it. isNew are the latter alone.
func (p *plan) nodesOf(pool gke.Pool, isNew bool) []*corev1.Node {
	var nodes []*corev1.Node
	for _, room := range p.rooms {
		if pool.Has(room.node) && (room.planned || !isNew) {
			nodes = append(nodes, room.node)
		}
	}
	return nodes
}
