package gcp

import (
	"maps"
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"persia/sandbox/gcp/nodepools"
)

// autoscaledPool returns a pool over two zones.
func autoscaledPool(t *testing.T, least, most int) resource.PropertyMap {
	t.Helper()
	inputs := change(t, poolInputs("workers", 1, values{}), "nodeCount", nil)
	inputs = change(t, inputs, "nodeLocations", []any{"us-central1-b", "us-central1-a"})
	return change(t, inputs, "autoscaling", values{"totalMinNodeCount": least, "totalMaxNodeCount": most})
}

// announced returns the pools that the autoscaler knows, by name.
func (g simulated) announced() map[string]nodepools.Pool {
	g.Helper()
	list, err := g.client.CoreV1().ConfigMaps("kube-system").List(g.Context(), metav1.ListOptions{LabelSelector: nodepools.AutoscaledLabel})
	require.NoError(g, err)
	pools := map[string]nodepools.Pool{}
	for i := range list.Items {
		pool, err := nodepools.FromConfigMap(&list.Items[i])
		require.NoError(g, err)
		pools[pool.Name()] = pool
	}
	return pools
}

// grow gives the pool nodes, as the autoscaler does.
func (g simulated) grow(pool nodepools.Pool, count int) {
	g.Helper()
	var nodes []*corev1.Node
	for _, node := range g.nodes() {
		nodes = append(nodes, &node)
	}
	for range count {
		next := pool.Next(nodes)[0]
		_, err := g.client.CoreV1().Nodes().Create(g.Context(), next, metav1.CreateOptions{})
		require.NoError(g, err)
		nodes = append(nodes, next)
	}
}

// lose takes a node away.
func (g simulated) lose(name string) {
	g.Helper()
	require.NoError(g, g.client.CoreV1().Nodes().Delete(g.Context(), name, metav1.DeleteOptions{}))
}

func TestAutoscalerIsToldOfItsPools(t *testing.T) {
	g := newGoogle(t)
	inputs := autoscaledPool(t, 1, 5)
	g.create(nodePoolType, inputs)
	g.create(nodePoolType, poolInputs("others", 1, values{}))
	queued := change(t, change(t, inputs, "name", "queued"), "queuedProvisioning", values{"enabled": true})
	g.create(nodePoolType, queued)
	require.Equal(t, []string{"queued", "workers"}, slices.Sorted(maps.Keys(g.announced())))
	assert.True(t, g.announced()["queued"].Queued())
	workers := g.announced()["workers"]
	assert.False(t, workers.Queued())
	assert.Equal(t, 1, workers.Min())
	assert.Equal(t, 5, workers.Max())
	current, err := workers.Current(t.Context(), g.client)
	require.NoError(t, err)
	assert.True(t, current)
	require.NoError(t, g.delete(nodePoolType, queued))

	larger := change(t, inputs, "autoscaling.totalMaxNodeCount", 9)
	g.update(nodePoolType, inputs, larger)
	assert.Equal(t, 9, g.announced()["workers"].Max())

	fixed := change(t, change(t, inputs, "autoscaling", nil), "nodeCount", 1)
	g.update(nodePoolType, larger, fixed)
	assert.Empty(t, g.announced(), "a fixed pool")
	current, err = workers.Current(t.Context(), g.client)
	require.NoError(t, err)
	assert.False(t, current)

	g.update(nodePoolType, fixed, inputs)
	assert.Len(t, g.announced(), 1)
	require.NoError(t, g.delete(nodePoolType, inputs))
	assert.Empty(t, g.announced(), "a pool that is gone")
}

func TestTheAutoscalersNodesAreLikeThePools(t *testing.T) {
	g := newGoogle(t)
	g.create(nodePoolType, change(t, autoscaledPool(t, 3, 9), "nodeConfig", gpuPool()["nodeConfig"].Mappable()))
	made := g.nodes()
	require.Len(t, made, 3)
	for name := range made {
		g.lose(name)
	}
	g.grow(g.announced()["workers"], 3)
	require.Len(t, g.nodes(), 3)
	for name, node := range g.nodes() {
		assert.Equal(t, made[name].Labels, node.Labels)
		assert.Equal(t, made[name].Annotations, node.Annotations)
		assert.Equal(t, made[name].Spec, node.Spec)
		assert.Equal(t, made[name].Status, node.Status)
	}
}

func TestUpdateOfAnAutoscaledPoolKeepsTheNumberOfNodes(t *testing.T) {
	const a, b = "us-central1-a", "us-central1-b"
	for _, c := range []struct {
		name, path string
		value      any
		zones      map[string]int
		stay       int
	}{
		{"nothing", "autoscaling.totalMaxNodeCount", 5, map[string]int{a: 3, b: 1}, 4},
		{"labels", "nodeConfig.labels", values{"persia.com/team": "ads"}, map[string]int{a: 3, b: 1}, 4},
		{"a lower maximum", "autoscaling.totalMaxNodeCount", 2, map[string]int{a: 1, b: 1}, 2},
		{"a higher minimum", "autoscaling.totalMinNodeCount", 5, map[string]int{a: 3, b: 2}, 4},
		{"another machine", "nodeConfig.machineType", "n2-highmem-8", map[string]int{a: 2, b: 2}, 0},
		{"other zones", "nodeLocations", []any{a}, map[string]int{a: 4}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGoogle(t)
			old := autoscaledPool(t, 1, 5)
			g.create(nodePoolType, old)
			g.grow(g.announced()["workers"], 4)
			for name, node := range g.nodes() {
				if node.Labels[corev1.LabelTopologyZone] == b {
					g.lose(name)
					break
				}
			}
			before := g.nodes()
			require.Equal(t, map[string]int{a: 3, b: 1}, g.zones())

			g.update(nodePoolType, old, change(t, old, c.path, c.value))
			assert.Equal(t, c.zones, g.zones())
			stay := 0
			for name := range g.nodes() {
				if _, stayed := before[name]; stayed {
					stay++
				}
			}
			assert.Equal(t, c.stay, stay)
		})
	}
}

// The autoscaler continues while the provider works.
func TestUpdateMeetsTheAutoscaler(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	for verb, err := range map[string]error{
		"create": apierrors.NewAlreadyExists(nodes, "node"),
		"get":    apierrors.NewNotFound(nodes, "node"),
		"delete": apierrors.NewNotFound(nodes, "node"),
	} {
		t.Run(verb, func(t *testing.T) {
			g := newGoogle(t)
			old := autoscaledPool(t, 1, 5)
			g.create(nodePoolType, old)
			met := false
			g.client.PrependReactor(verb, "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				met = true
				return true, nil, err
			})
			changed := change(t, old, "nodeConfig.machineType", "n2-highmem-8")
			if verb == "get" {
				changed = change(t, old, "nodeConfig.labels", values{"persia.com/team": "ads"})
			}
			g.update(nodePoolType, old, changed)
			assert.True(t, met)
		})
	}
}
