package kube

import (
	"maps"
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/internals"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/internal/testkit"
)

func registerIn(t *testing.T, r *testkit.Recorder, object runtime.Object) error {
	t.Helper()
	return pulumi.RunErr(func(ctx *pulumi.Context) error {
		r := NewRegistrar(ctx)
		r.Component("persia:test:Component", "example").Add("example", object, nil)
		return r.End()
	}, pulumi.WithMocks("project", "stack", r))
}

// TestRegisterCustom: a custom resource names its own kind, which gives it the type
// token of the Pulumi SDK's CustomResource.
func TestRegisterCustom(t *testing.T) {
	type spec struct {
		Size int `json:"size"`
	}
	r := &testkit.Recorder{}
	require.NoError(t, registerIn(t, r, &Custom[spec]{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1alpha2", Kind: "Thing"},
		ObjectMeta: Meta("things", "a", nil),
		Spec:       spec{Size: 3},
	}))
	require.Len(t, r.Resources, 2)
	assert.Equal(t, "kubernetes:example.com/v1alpha2:Thing", r.Resources[1].TypeToken)
	assert.Equal(t, map[string]any{
		"apiVersion": "example.com/v1alpha2", "kind": "Thing",
		"metadata": map[string]any{"namespace": "things", "name": "a"},
		"spec":     map[string]any{"size": 3.0},
	}, r.Resources[1].Inputs.Mappable())
}

// TestRegisterLeavesOutZeroValues checks that no field is registered that Go's types print although it is not set.
func TestRegisterLeavesOutZeroValues(t *testing.T) {
	r := &testkit.Recorder{}
	require.NoError(t, registerIn(t, r, &appsv1.Deployment{
		ObjectMeta: Meta("n", "d", nil),
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c"}},
			Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		}}},
	}))
	inputs := r.Resources[1].Inputs.Mappable()
	assert.NotContains(t, inputs, "status")
	spec := inputs["spec"].(map[string]any)
	assert.NotContains(t, spec, "strategy")
	pod := spec["template"].(map[string]any)["spec"].(map[string]any)
	assert.Equal(t, []any{map[string]any{"name": "c"}}, pod["containers"])
	assert.Equal(t, []any{map[string]any{"name": "v", "emptyDir": map[string]any{}}}, pod["volumes"], "a directory that begins empty")
}

// TestRegisterKeepsSubresources checks that an empty object stays: it declares that a kind has a
// status, which its controller could not write otherwise.
func TestRegisterKeepsSubresources(t *testing.T) {
	r := &testkit.Recorder{}
	require.NoError(t, registerIn(t, r, &extensionsv1.CustomResourceDefinition{
		Spec: extensionsv1.CustomResourceDefinitionSpec{Versions: []extensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Subresources: &extensionsv1.CustomResourceSubresources{Status: &extensionsv1.CustomResourceSubresourceStatus{}},
		}}},
	}))
	version := r.Resources[1].Inputs.Mappable()["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	assert.Equal(t, map[string]any{"status": map[string]any{}}, version["subresources"])
}

// TestOutputs: the outputs of a component are the fields with a tag and a value.
func TestOutputs(t *testing.T) {
	type Access struct {
		URL string `pulumi:"url"`
	}
	type component struct {
		pulumi.ResourceState
		*Access
		Size, unexported int `pulumi:"size"`
	}
	outputs := Outputs(&component{Access: &Access{URL: "u"}})
	require.Len(t, outputs, 1)
	url, err := internals.UnsafeAwaitOutput(t.Context(), outputs["url"].(pulumi.Output))
	require.NoError(t, err)
	assert.Equal(t, "u", url.Value)
	assert.Equal(t, []string{"size"}, slices.Collect(maps.Keys(Outputs(&component{Size: 3, unexported: 4}))))
	assert.Empty(t, Outputs(struct{ Name string }{"n"}))
}

// unknown is an object of no kind.
type unknown struct{ corev1.Pod }

func (u *unknown) DeepCopyObject() runtime.Object { return u }

// TestRegisterNamesTheObject: an error says which object it is about, once.
func TestRegisterNamesTheObject(t *testing.T) {
	err := registerIn(t, &testkit.Recorder{}, &unknown{})
	assert.ErrorContains(t, err, "register example: ")
}
