package gcp

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"persia/gcp"
	"persia/sandbox/gcp/property"
)

func TestASecondPoolOfTheSameNameIsRefused(t *testing.T) {
	g := newGoogle(t)
	first := g.create(nodePoolType, gpuPool())
	assert.EqualValues(t, "projects/my-project/locations/us-central1/clusters/persia/nodePools/training", first.ID)
	require.Len(t, g.nodes(), 2)
	_, err := g.tryCreate(nodePoolType, gpuPool())
	assert.ErrorContains(t, err, "Error 409")
	assert.Len(t, g.nodes(), 2)
}

func TestUpdateScales(t *testing.T) {
	g := newGoogle(t)
	two := gpuPool()
	g.create(nodePoolType, two)
	g.create(nodePoolType, poolInputs("others", 1, values{}))
	before := g.names()

	five := change(t, two, "nodeCount", 5)
	state := g.update(nodePoolType, two, five).Properties
	assert.Equal(t, 5, property.NumberOr(state, "nodeCount", 0))
	assert.Len(t, g.nodes(), 6)
	assert.Subset(t, g.names(), before, "nodes stay")

	g.update(nodePoolType, five, two)
	assert.Equal(t, before, g.names())

	g.update(nodePoolType, two, change(t, two, "nodeCount", 0))
	assert.Len(t, g.nodes(), 1, "the other pool's")
}

func TestUpdateOfLabelsAndTaintsKeepsTheNodes(t *testing.T) {
	g := newGoogle(t)
	g.create(nodePoolType, gpuPool())
	before := g.names()
	trouble := corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute}
	for _, node := range g.nodes() {
		node.UID = "the same node"
		node.Spec.Taints = append(node.Spec.Taints, trouble)
		_, err := g.client.CoreV1().Nodes().Update(t.Context(), &node, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	// A node changes between reading and writing it, once.
	conflicts := 1
	g.client.PrependReactor("update", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts == 0 {
			return false, nil, nil
		}
		conflicts--
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "node", nil)
	})

	changed := change(t, gpuPool(), "nodeConfig.labels", values{"persia.com/team": "ads"})
	changed = change(t, changed, "nodeConfig.taints[0].value", "ads")
	g.update(nodePoolType, gpuPool(), changed)

	assert.Equal(t, before, g.names())
	for name, node := range g.nodes() {
		assert.EqualValues(t, "the same node", node.UID, name)
		assert.Equal(t, "ads", node.Labels["persia.com/team"])
		assert.NotContains(t, node.Labels, "persia.com/part")
		assert.Equal(t, []corev1.Taint{
			trouble,
			{Key: "persia.com/dedicated", Value: "ads", Effect: corev1.TaintEffectNoSchedule},
			{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule},
		}, node.Spec.Taints)
	}
}

func TestUpdateOfMachinesGoesThroughNewNodes(t *testing.T) {
	inRounds := []string{"list", "create", "delete", "create", "delete", "list", "list"}
	atOnce := []string{"list", "create", "create", "delete", "delete", "list", "list"}
	for _, c := range []struct {
		path  string
		value any
		verbs []string
	}{
		{"nodeConfig.machineType", "n2-highmem-8", inRounds},
		{"nodeConfig.imageType", "UBUNTU_CONTAINERD", inRounds},
		{"nodeConfig.diskType", "pd-ssd", inRounds},
		{"nodeConfig.diskSizeGb", 200, inRounds},
		{"nodeLocations", []any{"us-central1-a"}, atOnce},
	} {
		t.Run(c.path, func(t *testing.T) {
			g := newGoogle(t)
			old := poolInputs("workers", 2, values{})
			g.create(nodePoolType, old)
			before := g.names()
			g.client.ClearActions()

			g.update(nodePoolType, old, change(t, old, c.path, c.value))
			verbs := g.nodeVerbs()
			after := g.names()
			assert.Len(t, after, 2)
			for _, name := range before {
				assert.NotContains(t, after, name)
			}
			assert.Equal(t, c.verbs, verbs, "pods have somewhere to go")
		})
	}
}

// history is how the number of nodes of a pool changed.
type history struct {
	least, most int
	// rounds are the numbers of the first nodes that went one after another, without one that came
	// between. The simulated provider changes the type and the size of disks one after the other, so
	// the nodes of the first change go too.
	rounds []int
}

// historyOf follows the nodes of a pool from the nodes before.
func (g simulated) historyOf(pool string, before map[string]corev1.Node) history {
	g.Helper()
	pools := map[string]string{}
	count := 0
	for name, node := range before {
		pools[name] = node.Labels[gcp.LabelNodePool]
		if pools[name] == pool {
			count++
		}
	}
	of := history{least: count, most: count}
	going := false
	for _, action := range g.client.Actions() {
		switch action := action.(type) {
		case clienttesting.CreateAction:
			node, is := action.GetObject().(*corev1.Node)
			if !is || node.Labels[gcp.LabelNodePool] != pool {
				continue
			}
			pools[node.Name] = pool
			count++
			going = false
		case clienttesting.DeleteAction:
			if action.GetResource().Resource != "nodes" || pools[action.GetName()] != pool {
				continue
			}
			count--
			if _, first := before[action.GetName()]; first {
				if !going {
					of.rounds = append(of.rounds, 0)
				}
				of.rounds[len(of.rounds)-1]++
				going = true
			}
		}
		of.least, of.most = min(of.least, count), max(of.most, count)
	}
	return of
}

// TestUpgradesGoInRounds: GKE takes away maxSurge + maxUnavailable nodes at a time, and adds maxSurge
// before. Blue-green adds all nodes before.
func TestUpgradesGoInRounds(t *testing.T) {
	surge := func(surge, unavailable int) values {
		return values{"strategy": "SURGE", "maxSurge": surge, "maxUnavailable": unavailable}
	}
	for name, c := range map[string]struct {
		settings any
		want     history
	}{
		"GKE's own settings":  {nil, history{5, 6, []int{1, 1, 1, 1, 1}}},
		"one more":            {surge(1, 0), history{5, 6, []int{1, 1, 1, 1, 1}}},
		"one less":            {surge(0, 1), history{4, 5, []int{1, 1, 1, 1, 1}}},
		"two less":            {surge(0, 2), history{3, 5, []int{2, 2, 1}}},
		"one more, two less":  {surge(1, 2), history{3, 6, []int{3, 2}}},
		"more than there are": {surge(7, 0), history{5, 10, []int{5}}},
		"all nodes beside the old ones": {values{"strategy": "BLUE_GREEN", "blueGreenSettings": values{
			"standardRolloutPolicy": values{"batchNodeCount": 2}, "nodePoolSoakDuration": "3600s",
		}}, history{5, 10, []int{5}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGoogle(t)
			old := poolInputs("workers", 5, values{})
			if c.settings != nil {
				old = properties(old.Mappable())
				old["upgradeSettings"] = resource.NewPropertyValue(c.settings)
			}
			g.create(nodePoolType, old)
			before := g.nodes()
			g.client.ClearActions()
			g.update(nodePoolType, old, change(t, old, "nodeConfig.machineType", "n2-highmem-8"))
			assert.Equal(t, c.want, g.historyOf("workers", before))
			assert.Len(t, g.nodes(), 5)
		})
	}
}

func TestReadCountsNodes(t *testing.T) {
	for _, c := range []struct {
		name    string
		zones   []any
		deleted int
		want    int
	}{
		{"as the program said", []any{"us-central1-a"}, 0, 4},
		{"a node is gone", []any{"us-central1-a"}, 1, 3},
		{"all nodes are gone", []any{"us-central1-a"}, 4, 0},
		{"several zones", []any{"us-central1-a", "us-central1-b"}, 0, 4},
		{"a node is gone from one of several zones", []any{"us-central1-a", "us-central1-b"}, 1, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGoogle(t)
			inputs := change(t, poolInputs("workers", 4, values{}), "nodeLocations", c.zones)
			state := g.create(nodePoolType, inputs).Properties
			before := g.names()
			for _, name := range before[:c.deleted] {
				require.NoError(t, g.client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}))
			}

			read := g.read(nodePoolType, state)
			assert.NotEmpty(t, read.ID, "the pool is still there")
			assert.Equal(t, c.want, property.NumberOr(read.Inputs, "nodeCount", -1))
			assert.Equal(t, c.want, property.NumberOr(read.Outputs, "nodeCount", -1))

			diff := g.diff(nodePoolType, read.Inputs, inputs)
			assert.Equal(t, c.deleted > 0, diff.Changes == plugin.DiffSome)
			assert.False(t, diff.Replace())
			g.update(nodePoolType, read.Inputs, inputs)
			assert.Equal(t, before, g.names(), "the next update puts it right")
		})
	}
}

func TestReadOfAnAutoscaledPoolLeavesTheCountToTheAutoscaler(t *testing.T) {
	g := newGoogle(t)
	inputs := change(t, gpuPool(), "nodeCount", nil)
	inputs = change(t, inputs, "autoscaling", values{"totalMinNodeCount": 1, "totalMaxNodeCount": 9})
	g.create(nodePoolType, inputs)
	assert.NotContains(t, g.read(nodePoolType, inputs).Inputs, resource.PropertyKey("nodeCount"))
	assert.Equal(t, plugin.DiffNone, g.diff(nodePoolType, inputs, inputs).Changes)
}

func TestDeleteTakesThePoolsNodesOnly(t *testing.T) {
	g := newGoogle(t)
	state := g.create(nodePoolType, gpuPool()).Properties
	g.create(nodePoolType, poolInputs("others", 3, values{}))

	require.NoError(t, g.delete(nodePoolType, state))
	assert.Len(t, g.nodes(), 3)
	require.NoError(t, g.delete(nodePoolType, state), "deleting again finds nothing")
}
