package gcp

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"
)

// newExtensions is client-go's fake of an API server that serves every kind as soon
// as it is there.
func newExtensions() *fake.Clientset {
	// The fake that manages fields has no schema of definitions.
	client := fake.NewSimpleClientset()
	client.PrependReactor("create", "customresourcedefinitions", func(action k8stesting.Action) (bool, runtime.Object, error) {
		definition := action.(k8stesting.CreateAction).GetObject().(*extensionsv1.CustomResourceDefinition)
		definition.Status.Conditions = []extensionsv1.CustomResourceDefinitionCondition{
			{Type: extensionsv1.Established, Status: extensionsv1.ConditionTrue},
		}
		return false, nil, nil
	})
	return client
}

// kindsServed returns the names of the kinds in the control plane.
func (g simulated) kindsServed() []string {
	g.Helper()
	list, err := g.extensions.ApiextensionsV1().CustomResourceDefinitions().List(g.Context(), metav1.ListOptions{})
	require.NoError(g, err)
	var names []string
	for _, definition := range list.Items {
		names = append(names, definition.Name)
	}
	return names
}

func TestManagedPrometheusBringsItsKinds(t *testing.T) {
	const podMonitoring = "podmonitorings.monitoring.googleapis.com"
	with := func(monitoring values) resource.PropertyMap {
		return change(t, clusterInputs(), "monitoringConfig", monitoring)
	}
	on := with(values{"managedPrometheus": values{"enabled": true}})
	off := with(values{"managedPrometheus": values{"enabled": false}})
	for name, inputs := range map[string]resource.PropertyMap{"turned on": on, "nothing said": with(values{})} {
		t.Run(name, func(t *testing.T) {
			g := newGoogle(t)
			g.create(clusterType, inputs)
			assert.Contains(t, g.kindsServed(), podMonitoring)
			g.update(clusterType, inputs, off)
			assert.Contains(t, g.kindsServed(), podMonitoring, "the program has objects of it")
			require.NoError(t, g.delete(clusterType, off))
			assert.Empty(t, g.kindsServed())
		})
	}
	t.Run("turned off", func(t *testing.T) {
		g := newGoogle(t)
		g.create(clusterType, off)
		assert.NotContains(t, g.kindsServed(), podMonitoring)
		g.update(clusterType, off, on)
		assert.Contains(t, g.kindsServed(), podMonitoring, "it can be turned on")
	})
}
