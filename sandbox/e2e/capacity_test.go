package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/capacity"
	"persia/config"
	"persia/internal/testkit"
)

// crowdedPools are what differs between pools, of one stack, that have just the nodes that they need.
var crowdedPools = map[string]string{
	// One pod a node.
	"workers": `
nodePools: [{name: workers, machineType: c2-standard-30, nodes: 3}]
jobs: [{name: workers, embeddingWorker: {nodePool: workers, replicas: 3, resources: {limits: {cpu: "28", memory: 100Gi}}}}]`,
	// Several pods a node, and memory binds.
	"servers": `
nodePools: [{name: servers, machineType: m2-ultramem-416, nodes: 3}]
jobs: [{name: servers, embeddingParameterServer: {nodePool: servers, replicas: 10, resources: {limits: {cpu: "80", memory: 2500Gi}}}}]`,
	// Exactly as much CPU as a node has: 7910m less the 500m of GKE's own pods, in three.
	"tight": `
nodePools: [{name: tight, machineType: n2-standard-8, nodes: 4}]
jobs: [{name: tight, dataloader: {nodePool: tight, replicas: 12, resources: {limits: {cpu: 2470m, memory: 1Gi}}}}]`,
	// As many pods as a node takes.
	"crowd": `
nodePools: [{name: crowd, machineType: n2-standard-32, nodes: 2, maxPodsPerNode: 32}]
jobs: [{name: crowd, dataloader: {nodePool: crowd, replicas: 35}}]`,
	// Two roles on a pool.
	"pair": `
nodePools: [{name: pair, machineType: n2-standard-32, nodes: 7}]
jobs:
  - name: pair
    embeddingParameterServer: {nodePool: pair, replicas: 6, resources: {limits: {cpu: "28", memory: 32Gi}}}
    dataloader: {nodePool: pair, replicas: 6, resources: {limits: {cpu: "5", memory: 16Gi}}}`,
	// Three roles on a tainted pool.
	"three": `
nodePools: [{name: three, machineType: n2-standard-32, nodes: 6, taints: [{key: dedicated, value: work, effect: NoSchedule}]}]
jobs:
  - name: three
    embeddingParameterServer: {nodePool: three, replicas: 2, resources: {limits: {cpu: "28", memory: 100Gi}}}
    embeddingWorker: {nodePool: three, replicas: 3, resources: {limits: {cpu: "20", memory: 32Gi}}}
    dataloader: {nodePool: three, replicas: 8, resources: {limits: {cpu: "6", memory: 4Gi}}}`,
	// Fragments of GPUs.
	"fragments": `
nodePools: [{name: fragments, machineType: g2-standard-96, nodes: 5, gpu: {type: nvidia-l4, count: 8}}]
jobs:
  - {name: some, nnWorker: {nodePool: fragments, replicas: 3, resources: {limits: {cpu: "1", memory: 4Gi, nvidia.com/gpu: "1"}}}}
  - {name: whole, nnWorker: {nodePool: fragments, replicas: 2, resources: {limits: {cpu: "1", memory: 4Gi, nvidia.com/gpu: "8"}}}}`,
	// A DaemonSet on every node: without the driver's installer, three pods would fit a node.
	"driver": `
nvidiaDriver: {installer: ubuntu-daemonset}
nodePools: [{name: driver, machineType: g2-standard-4, nodes: 2, gpu: {type: nvidia-l4, count: 1}}]
jobs: [{name: loaders, dataloader: {nodePool: driver, replicas: 4, resources: {limits: {cpu: 1140m, memory: 2Gi}}}}]`,
	// A machine type that the stack describes.
	"described": `
machineTypes: {x9-highmem-64: {cpus: 64, memory: 2Ti}}
nodePools: [{name: described, machineType: x9-highmem-64, nodes: 2, disk: {type: pd-balanced}}]
jobs: [{name: described, embeddingParameterServer: {nodePool: described, replicas: 5, resources: {limits: {cpu: "10", memory: 600Gi}}}}]`,
	// NATS servers kept apart.
	"brokers": `
nats: {antiAffinity: true}
nodePools: [{name: brokers, machineType: n2-standard-8, nodes: 3}]
jobs: [{name: apart, nats: {size: 3, nodePool: brokers, resources: {limits: {cpu: "1", memory: 2Gi}}}}]`,
}

// TestCapacity brings up pools which have just the nodes that the plan asks for. No pod is left pending, as the program
// brings them up and with the small ones first. With a node less, some are: of pods that are alike exactly as many as
// predicted, and of others at the latest with two nodes less. A stack with one node too few changes nothing.
func TestCapacity(t *testing.T) {
	t.Parallel()
	s := newStack(t, slices.Collect(maps.Values(crowdedPools))...)
	s.up()
	c := crowded{s.cluster, map[string]capacity.PoolPlan{}}
	for _, plan := range s.load().Plan().Pools {
		if _, crowded := crowdedPools[plan.Name]; crowded {
			require.Equal(t, plan.Needed, plan.Nodes, "the pool %s should have what it needs", plan.Name)
			c.plans[plan.Name] = plan
		}
	}
	assert.Empty(t, c.settle(), "pending as the program brings them up")
	c.restart()
	assert.Empty(t, c.settle(), "pending with the small ones first")

	loose := map[string]capacity.PoolPlan{}
	for name, plan := range c.plans {
		plan.Nodes--
		c.plans[name] = plan
	}
	c.restart()
	pending := c.settle()
	for name, plan := range c.plans {
		missing, alike := plan.Missing()
		if alike {
			assert.Equal(t, missing, pending[name], "pending in %s on %d of %d nodes", name, plan.Nodes, plan.Needed)
		} else if pending[name] == 0 && plan.Nodes > 1 {
			plan.Nodes--
			loose[name] = plan
		} else {
			assert.Positive(t, pending[name], "pending in %s on %d of %d nodes", name, plan.Nodes, plan.Needed)
		}
	}
	if c.plans = loose; len(loose) > 0 {
		c.restart()
		pending = c.settle()
		for name := range loose {
			assert.Positive(t, pending[name], "pending in %s with two nodes less", name)
		}
	}
	s.run(t, []step{{name: "a node too few", edit: `nodePools: [{name: workers, nodes: 2}]`,
		refused: "2 × c2-standard-30 hold 2 of 3 × embeddingWorker of workers, 1 per node by CPU; write 3"}})
}

// crowded are pools, with the nodes that pods may run on.
type crowded struct {
	cluster
	plans map[string]capacity.PoolPlan
}

// restart takes the pods away and lets them come again, the small ones first, to as many nodes as the plans say.
func (c crowded) restart() {
	c.t.Helper()
	for name, plan := range c.plans {
		nodes := c.nodesOf(name)
		require.Len(c.t, nodes, plan.Needed)
		for _, node := range nodes[plan.Nodes:] {
			testkit.Must(c.CoreV1().Nodes().Patch(c.t.Context(), node, "application/merge-patch+json", []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{}))(c.t)
			for _, pod := range c.assigned("nats-io") {
				if pod.Spec.NodeName == node {
					require.NoError(c.t, c.CoreV1().Pods("nats-io").Delete(c.t.Context(), pod.Name, metav1.DeleteOptions{}))
				}
			}
		}
	}
	sets := c.sets()
	for _, set := range sets {
		c.scale(set.Name, 0)
	}
	count := 0
	awaitPods := func() {
		c.t.Helper()
		await(c.t, func() bool {
			pods := c.assigned("persia")
			return len(pods) == count && !slices.ContainsFunc(pods, unseen)
		}, "the scheduler has looked at %d pods", count)
	}
	awaitPods()
	for _, set := range sets {
		c.scale(set.Name, *set.Spec.Replicas)
		count += int(*set.Spec.Replicas)
		awaitPods()
	}
}

// settle waits for all pods and until the scheduler tries no more, and counts the pods without a node, by pool.
func (c crowded) settle() map[string]int {
	c.t.Helper()
	// A pod that found no node is tried again after at most ten seconds.
	const calm = 11 * time.Second
	since, last := time.Now(), map[string]int{"none": 1}
	await(c.t, func() bool {
		counts, pending, pods := map[string]int{}, map[string]int{}, c.assigned("")
		for _, pod := range pods {
			pool := pod.Spec.NodeSelector[poolLabel]
			counts[pool]++
			if pod.Spec.NodeName == "" {
				pending[pool]++
			}
		}
		whole := !slices.ContainsFunc(pods, unseen)
		for name, plan := range c.plans {
			whole = whole && counts[name] == int(plan.Used.Pods)
		}
		if !whole || !maps.Equal(pending, last) {
			since, last = time.Now(), pending
			return false
		}
		return len(pending) == 0 || time.Since(since) > calm
	}, "the scheduler has nothing more to try")
	return last
}

// assigned returns the pods of a namespace that are pinned to the pools and not on their way out.
func (c crowded) assigned(namespace string) []corev1.Pod {
	c.t.Helper()
	return slices.DeleteFunc(c.pods(namespace, ""), func(pod corev1.Pod) bool {
		_, of := c.plans[pod.Spec.NodeSelector[poolLabel]]
		return !of || pod.DeletionTimestamp != nil
	})
}

// unseen says that the scheduler has not looked at a pod.
func unseen(pod corev1.Pod) bool {
	return pod.Spec.NodeName == "" && !slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable
	})
}

// sets returns the StatefulSets of the pools, by ascending priority, and then by ascending GPUs of their pods.
func (c crowded) sets() []appsv1.StatefulSet {
	c.t.Helper()
	list := testkit.Must(c.AppsV1().StatefulSets("persia").List(c.t.Context(), metav1.ListOptions{}))(c.t)
	sets := slices.DeleteFunc(list.Items, func(set appsv1.StatefulSet) bool {
		_, of := c.plans[set.Spec.Template.Spec.NodeSelector[poolLabel]]
		return !of
	})
	priorities := config.Priorities()
	rank := func(set appsv1.StatefulSet) int {
		return -slices.IndexFunc(priorities, func(p config.Priority) bool { return p.Name == set.Spec.Template.Spec.PriorityClassName })
	}
	slices.SortFunc(sets, func(a, b appsv1.StatefulSet) int {
		gpusA, gpusB := a.Spec.Template.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"], b.Spec.Template.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
		return cmp.Or(cmp.Compare(rank(a), rank(b)), gpusA.Cmp(gpusB), strings.Compare(a.Name, b.Name))
	})
	return sets
}

func (c cluster) scale(set string, replicas int32) {
	c.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	testkit.Must(c.AppsV1().StatefulSets("persia").Patch(c.t.Context(), set, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}, "scale"))(c.t)
}
