package e2e

import (
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/capacity"
	"persia/config"
)

// scheduledPool is a node pool with the pods that are pinned to it.
type scheduledPool struct {
	cluster
	name string
}

// podsOf returns the pods of a node that are pinned to its pool.
func (p scheduledPool) podsOf(node string) []corev1.Pod {
	return slices.DeleteFunc(p.assigned(), func(pod corev1.Pod) bool { return pod.Spec.NodeName != node })
}

// comeAgain creates the pods again, the small ones first, to as many nodes as the
// plan says.
func (p scheduledPool) comeAgain(plan capacity.PoolPlan, nodes []string) {
	p.t.Helper()
	p.cordon(nodes[plan.Nodes:], true)
	if sets := p.sets(); len(sets) > 0 {
		p.restart(sets)
		return
	}
	for _, node := range nodes[plan.Nodes:] {
		p.deletePods(p.podsOf(node))
	}
}

// awaitPending waits until there are so many pods of a pool, and so many of them
// find no node.
func (p scheduledPool) awaitPending(count, want int, when string) {
	p.t.Helper()
	pods, pending := 0, 0
	why, reached := eventually(patience, nothingLost, func() bool {
		var looked bool
		pods, pending, looked = p.scheduling()
		return looked && pods == count && pending == want
	})
	assert.True(p.t, reached, "pool %s has %d pods and should have %d, of which %d are pending and %d should be, %s: %s",
		p.name, pods, count, pending, want, when, why)
}

// scheduling counts the pods of a pool, and those without a node. It tells whether
// the scheduler has looked at all of these.
func (p scheduledPool) scheduling() (pods, pending int, looked bool) {
	p.t.Helper()
	looked = true
	for _, pod := range p.assigned() {
		pods++
		if pod.Spec.NodeName == "" {
			pending++
			looked = looked && unschedulable(pod)
		}
	}
	return pods, pending, looked
}

// settle waits until the scheduler has nothing more to try with so many pods of a
// pool, and counts those without a node.
func (p scheduledPool) settle(count int) int {
	p.t.Helper()
	// A pod that found no node is tried again after at most ten seconds.
	const calm = 11 * time.Second
	since, last := time.Now(), -1
	await(p.t, func() bool {
		pods, pending, looked := p.scheduling()
		if !looked || pods != count || pending != last {
			since, last = time.Now(), pending
			return false
		}
		return pending == 0 || time.Since(since) > calm
	}, "%d pods of pool %s", count, p.name)
	return last
}

func unschedulable(pod corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// assigned returns the pods that are pinned to a pool and not on their way out.
func (p scheduledPool) assigned() []corev1.Pod {
	p.t.Helper()
	return slices.DeleteFunc(p.pods("", ""), func(pod corev1.Pod) bool {
		return pod.Spec.NodeSelector[poolLabel] != p.name || pod.DeletionTimestamp != nil
	})
}

func (p scheduledPool) podsByNode() map[string]int {
	counts := map[string]int{}
	for _, pod := range p.assigned() {
		if pod.Spec.NodeName != "" {
			counts[pod.Spec.NodeName]++
		}
	}
	return counts
}

// sets returns the StatefulSets whose pods are pinned to a pool, by ascending priority, and then by
// ascending size of their pods.
func (p scheduledPool) sets() []appsv1.StatefulSet {
	p.t.Helper()
	list, err := p.AppsV1().StatefulSets("persia").List(p.t.Context(), metav1.ListOptions{})
	require.NoError(p.t, err)
	sets := slices.DeleteFunc(list.Items, func(set appsv1.StatefulSet) bool {
		return set.Spec.Template.Spec.NodeSelector[poolLabel] != p.name
	})
	rank := func(set appsv1.StatefulSet) int64 {
		limits := set.Spec.Template.Spec.Containers[0].Resources.Limits
		gpus := limits["nvidia.com/gpu"]
		for i, priority := range config.Priorities() {
			if priority.Name == set.Spec.Template.Spec.PriorityClassName {
				return int64(100-i)*1000 + gpus.Value()
			}
		}
		return 0
	}
	slices.SortFunc(sets, func(a, b appsv1.StatefulSet) int { return int(rank(a) - rank(b)) })
	return sets
}

// restart takes all pods of StatefulSets away and lets them come again, one set
// after the other.
func (p scheduledPool) restart(sets []appsv1.StatefulSet) {
	p.t.Helper()
	for _, set := range sets {
		p.scale(set.Name, 0)
	}
	p.awaitLooked(0)
	count := 0
	for _, set := range sets {
		p.scale(set.Name, *set.Spec.Replicas)
		count += int(*set.Spec.Replicas)
		p.awaitLooked(count)
	}
}

// awaitLooked waits until the scheduler has looked at so many pods of a pool.
func (p scheduledPool) awaitLooked(count int) {
	p.t.Helper()
	await(p.t, func() bool {
		pods, _, looked := p.scheduling()
		return looked && pods == count
	}, "%d pods of pool %s", count, p.name)
}
