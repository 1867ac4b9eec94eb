package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/capacity"
)

// TestCapacity brings up a stack of made-up pools, which have just the nodes that the plan
// asks for. No pod is left pending, in whatever order they come; and with a node less, some
// are: of pods that are alike exactly as many as predicted, and of others at the latest with
// two nodes less. A stack with one node too few changes nothing.
func TestCapacity(t *testing.T) {
	t.Parallel()
	project, dir, all := t.TempDir(), t.TempDir(), together(madeUpPools)
	loaded, err := load(stackText(t, project, all))
	require.NoError(t, err)
	plans := map[string]capacity.PoolPlan{}
	for _, plan := range loaded.Plan().Pools {
		plans[plan.Name] = plan
	}
	s := newSandboxOf(t, project, dir, "madeup")
	err = s.Apply(t.Context())
	require.NoError(t, err)
	for _, made := range madeUpPools {
		t.Run(made.name, func(t *testing.T) {
			plan := plans[made.pool]
			require.Equal(t, plan.Needed, plan.Nodes, "the pool should have what it needs")
			c := newCluster(t, s)
			c.assertSound(plan)
			c.assertTight(plan)
		})
	}
	t.Run("a node too few", func(t *testing.T) {
		all.pools[0] = maps.Clone(all.pools[0])
		all.pools[0]["nodes"] = all.pools[0]["nodes"].(int) - 1
		stackText(t, project, all)
		assertRefused(t, project, dir, "madeup", "2 × c2-standard-30 hold 2 of 3 × embeddingWorker of workers, 1 per node by CPU; write 3")
	})
}

// madeUpPools are stacks that can be one, because each has a pool of its own and jobs with
// other names.
var madeUpPools = []madeUp{
	{
		name: "one pod a node",
		pool: "workers", pools: []object{{"name": "workers", "machineType": "c2-standard-30", "nodes": 3}},
		jobs: []object{job("workers", object{"embeddingWorker": role("workers", 3, "28", "100Gi")})},
	},
	{
		name: "several pods a node, memory binds",
		pool: "servers", pools: []object{{"name": "servers", "machineType": "m2-ultramem-416", "nodes": 3}},
		jobs: []object{job("servers", object{"embeddingParameterServer": role("servers", 10, "80", "2500Gi")})},
	},
	{
		name: "exactly as much CPU as a node has",
		pool: "tight", pools: []object{{"name": "tight", "machineType": "n2-standard-8", "nodes": 4}},
		// 7910m less the 500m of GKE's own pods, in three.
		jobs: []object{job("tight", object{"dataloader": role("tight", 12, "2470m", "1Gi")})},
	},
	{
		name: "as many pods as a node takes",
		pool: "crowd", pools: []object{{"name": "crowd", "machineType": "n2-standard-32", "nodes": 2, "maxPodsPerNode": 32}},
		jobs: []object{job("crowd", object{"dataloader": role("crowd", 35, "100m", "128Mi")})},
	},
	{
		name: "two roles on a pool",
		pool: "pair", pools: []object{{"name": "pair", "machineType": "n2-standard-32", "nodes": 7}},
		jobs: []object{job("pair", object{
			"embeddingParameterServer": role("pair", 6, "28", "32Gi"),
			"dataloader":               role("pair", 6, "5", "16Gi"),
		})},
	},
	{
		name: "three roles on a tainted pool",
		pool: "three", pools: []object{{"name": "three", "machineType": "n2-standard-32", "nodes": 6,
			"taints": []object{{"key": "dedicated", "value": "work", "effect": "NoSchedule"}}}},
		jobs: []object{job("three", object{
			"embeddingParameterServer": role("three", 2, "28", "100Gi"),
			"embeddingWorker":          role("three", 3, "20", "32Gi"),
			"dataloader":               role("three", 8, "6", "4Gi"),
		})},
	},
	{
		name: "GPU fragments",
		pool: "fragments", pools: []object{{"name": "fragments", "machineType": "g2-standard-96", "nodes": 5,
			"gpu": object{"type": "nvidia-l4", "count": 8}}},
		jobs: []object{
			job("some", object{"nnWorker": gpuRole("fragments", 3, "1", "4Gi", 1)}),
			job("whole", object{"nnWorker": gpuRole("fragments", 2, "1", "4Gi", 8)}),
		},
	},
	{
		name:      "a DaemonSet on every node",
		installer: "ubuntu-daemonset",
		pool:      "driver", pools: []object{{"name": "driver", "machineType": "g2-standard-4", "nodes": 2,
			"gpu": object{"type": "nvidia-l4", "count": 1}}},
		// Without the driver's installer, three would fit a node.
		jobs: []object{job("loaders", object{"dataloader": role("driver", 4, "1140m", "2Gi")})},
	},
	{
		name:         "a machine type that the stack describes",
		machineTypes: object{"x9-highmem-64": object{"cpus": 64, "memory": "2Ti"}},
		pool:         "described", pools: []object{{"name": "described", "machineType": "x9-highmem-64", "nodes": 2, "disk": object{"type": "pd-balanced"}}},
		jobs: []object{job("described", object{"embeddingParameterServer": role("described", 5, "10", "600Gi")})},
	},
	{
		name: "NATS servers kept apart",
		pool: "brokers", pools: []object{{"name": "brokers", "machineType": "n2-standard-8", "nodes": 3}},
		nats: object{"size": 1, "antiAffinity": true, "resources": object{"limits": object{"cpu": "100m", "memory": "512Mi"}}},
		jobs: []object{job("apart", object{"nats": object{"size": 3, "nodePool": "brokers",
			"resources": object{"limits": object{"cpu": "1", "memory": "2Gi"}}}})},
	},
}

// assertSound: whatever order the pods come in, none is left pending.
func (c cluster) assertSound(plan capacity.PoolPlan) {
	c.t.Helper()
	p, all := scheduledPool{c, plan.Name}, int(plan.Used.Pods)
	p.awaitPending(all, 0, "as the program brings them up")
	sets := p.sets()
	if len(sets) == 0 {
		return
	}
	p.restart(sets)
	p.awaitPending(all, 0, "with the small ones first")
	if len(sets) > 1 {
		slices.Reverse(sets)
		p.restart(sets)
		p.awaitPending(all, 0, "with the large ones first")
		p.deletePods(p.assigned())
		p.awaitPending(all, 0, "all at once")
	}
}

// assertTight: with a node less, pods are left pending.
func (c cluster) assertTight(plan capacity.PoolPlan) {
	c.t.Helper()
	p, nodes := scheduledPool{c, plan.Name}, c.nodesOf(plan.Name)
	require.Len(c.t, nodes, plan.Needed)
	defer c.cordon(nodes, false)

	plan.Nodes = plan.Needed - 1
	p.comeAgain(plan, nodes)
	if missing, alike := plan.Missing(); alike {
		p.awaitPending(int(plan.Used.Pods), missing, fmt.Sprintf("on %d of %d nodes", plan.Nodes, plan.Needed))
		for name, count := range p.podsByNode() {
			assert.Equal(c.t, plan.Holds(plan.Pods[0]), count, "pods on %s", name)
		}
		return
	}
	pending := p.settle(int(plan.Used.Pods))
	if pending == 0 && plan.Nodes > 1 {
		plan.Nodes--
		p.comeAgain(plan, nodes)
		pending = p.settle(int(plan.Used.Pods))
	}
	fmt.Fprintf(c.t.Output(), "%s: needs %d nodes; %d pods pending on %d\n", c.t.Name(), plan.Needed, pending, plan.Nodes)
	assert.Positive(c.t, pending, "pending on %d of %d nodes", plan.Nodes, plan.Needed)
}

func (c cluster) nodesOf(pool string) []string {
	var names []string
	for name, node := range c.nodes() {
		if node.Labels[poolLabel] == pool {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (c cluster) scale(set string, replicas int32) {
	c.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	_, err := c.AppsV1().StatefulSets("persia").Patch(c.t.Context(), set, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}, "scale")
	require.NoError(c.t, err)
}

func (c cluster) deletePods(pods []corev1.Pod) {
	c.t.Helper()
	for _, pod := range pods {
		require.NoError(c.t, c.CoreV1().Pods(pod.Namespace).Delete(c.t.Context(), pod.Name, metav1.DeleteOptions{}))
	}
}

// cordon keeps new pods from nodes, or lets them in again.
func (c cluster) cordon(nodes []string, cordoned bool) {
	c.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, cordoned)
	for _, node := range nodes {
		_, err := c.CoreV1().Nodes().Patch(c.t.Context(), node, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
		require.NoError(c.t, err)
	}
}

// assertRefused previews a stack and brings it up, which is refused before anything of it
// is made.
func assertRefused(t *testing.T, project, dir, stack, want string) {
	t.Helper()
	var output strings.Builder
	s := openSandboxTo(t, &output, project, dir, stack)
	preview := func() error { _, err := s.Preview(t.Context()); return err }
	up := func() error { return s.Apply(t.Context()) }
	for _, command := range []func() error{preview, up} {
		output.Reset()
		require.Error(t, command(), output.String())
		assert.Contains(t, strings.Join(strings.Fields(output.String()), " "), want)
		assert.NotContains(t, output.String(), "kubernetes:", "nothing is made")
		assert.NotContains(t, output.String(), "gcp:", "nothing is made")
	}
	assert.NoError(t, s.Down(t.Context()))
}
