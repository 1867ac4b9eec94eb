package e2e

import (
	"context"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"persia/internal/testkit"
	"persia/sandbox/controlplane"
	"persia/sandbox/kubeprovider"
)

// TestKubernetesProvider: with a real API server, the provider must be no kinder than the official one.
func TestKubernetesProvider(t *testing.T) {
	t.Parallel()
	cluster := controlplane.New(t.TempDir(), "provider", tools)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop(context.Background())) })
	require.NoError(t, cluster.Start(t.Context(), t.Output()))
	config := testkit.Must(cluster.RESTConfig())(t)
	client := testkit.Must(clientset.NewForConfig(config))(t)
	configured := func(t *testing.T, options resource.PropertyMap) *kubeprovider.Provider {
		inputs := resource.PropertyMap{"kubeconfig": resource.NewProperty(testkit.Read(t, cluster.Kubeconfig()))}
		for key, value := range options {
			inputs[key] = value
		}
		provider := kubeprovider.New("4.30.0", "")
		testkit.Must(provider.Configure(t.Context(), plugin.ConfigureRequest{Inputs: inputs}))(t)
		return provider
	}
	strict := thing{t, configured(t, nil)}

	t.Run("what exists is not created", func(t *testing.T) {
		settings := `{apiVersion: v1, kind: ConfigMap, metadata: {name: exists, namespace: default}, data: {k: v}}`
		strict.mustCreate(settings)
		_, err := strict.create(settings, false)
		assert.ErrorContains(t, err, `configmaps "exists" already exists`)
		_, err = strict.create(settings, true)
		assert.NoError(t, err, "a preview cannot tell: it may be deleted before")
		taking := thing{t, configured(t, resource.PropertyMap{"upsertExistingObjects": resource.NewProperty("true")})}
		_, err = taking.create(settings, false)
		assert.NoError(t, err)
	})
	t.Run("what is gone is not updated", func(t *testing.T) {
		_, err := strict.update(`{apiVersion: v1, kind: ConfigMap, metadata: {name: gone, namespace: default}}`)
		assert.ErrorContains(t, err, `configmaps "gone" not found`)
	})
	t.Run("a field that the program leaves out is removed", func(t *testing.T) {
		strict.mustCreate(`{apiVersion: v1, kind: ConfigMap, metadata: {name: less, namespace: default}, data: {a: "1", b: "2"}}`)
		updated := testkit.Must(strict.update(`{apiVersion: v1, kind: ConfigMap, metadata: {name: less, namespace: default}, data: {a: "1"}}`))(t)
		assert.Equal(t, resource.NewPropertyMapFromMap(map[string]any{"a": "1"}), updated["data"].ObjectValue())
	})
	t.Run("an immutable field fails the update", func(t *testing.T) {
		strict.mustCreate(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: fixed, annotations: {pulumi.com/skipAwait: "true"}}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], hostPath: {path: /tmp}, volumeMode: Filesystem}}`)
		_, err := strict.update(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: fixed, annotations: {pulumi.com/skipAwait: "true"}}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], hostPath: {path: /tmp}, volumeMode: Block}}`)
		assert.ErrorContains(t, err, "immutable")
	})
	t.Run("a field of another writer", func(t *testing.T) {
		settings := `{apiVersion: v1, kind: ConfigMap, metadata: {name: shared, namespace: default}, data: {k: v}}`
		strict.mustCreate(settings)
		write := func(manager, value string) {
			_, err := client.CoreV1().ConfigMaps("default").Patch(t.Context(), "shared", types.MergePatchType,
				[]byte(`{"data": {"k": "`+value+`"}}`), metav1.PatchOptions{FieldManager: manager})
			require.NoError(t, err)
		}
		write("kubectl-edit", "by kubectl")
		_, err := strict.update(settings)
		assert.NoError(t, err, "what kubectl wrote is taken over")
		write("controller", "by a controller")
		_, err = strict.update(settings)
		assert.NoError(t, err, "the program forces its updates")
	})
}

// thing makes and changes objects that are written as YAML.
type thing struct {
	t *testing.T
	*kubeprovider.Provider
}

func (p thing) inputs(manifest string) (resource.URN, resource.PropertyMap) {
	var content map[string]any
	require.NoError(p.t, yaml.Unmarshal([]byte(manifest), &content))
	inputs := resource.NewPropertyMapFromMap(content)
	urn := resource.URN("urn:pulumi:stack::persia::kubernetes:core/v1:" + inputs["kind"].StringValue() + "::thing")
	return urn, inputs
}

func (p thing) create(manifest string, preview bool) (resource.PropertyMap, error) {
	urn, inputs := p.inputs(manifest)
	created, err := p.Create(p.t.Context(), plugin.CreateRequest{URN: urn, Type: urn.Type(), Properties: inputs, Preview: preview})
	return created.Properties, err
}

func (p thing) mustCreate(manifest string) {
	p.t.Helper()
	testkit.Must(p.create(manifest, false))(p.t)
}

func (p thing) update(manifest string) (resource.PropertyMap, error) {
	urn, inputs := p.inputs(manifest)
	updated, err := p.Update(p.t.Context(), plugin.UpdateRequest{URN: urn, Type: urn.Type(), ID: "thing", NewInputs: inputs})
	return updated.Properties, err
}
