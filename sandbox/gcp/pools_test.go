package gcp

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"persia/gcp"
)

// TestUpgradesGoInRounds: GKE takes away maxSurge + maxUnavailable nodes at a time, and adds maxSurge
// before.
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

// newExtensions is client-go's fake of an API server that serves every kind as soon
// as it is there.
func newExtensions() *fake.Clientset {
	// The fake that manages fields has no schema of definitions.
	client := fake.NewSimpleClientset()
	client.PrependReactor("create", "customresourcedefinitions", func(action clienttesting.Action) (bool, runtime.Object, error) {
		definition := action.(clienttesting.CreateAction).GetObject().(*extensionsv1.CustomResourceDefinition)
		definition.Status.Conditions = []extensionsv1.CustomResourceDefinitionCondition{
			{Type: extensionsv1.Established, Status: extensionsv1.ConditionTrue},
		}
		return false, nil, nil
	})
	return client
}
