package kube

import (
	"maps"
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/internals"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/internal/testkit"
)

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
	err := pulumi.RunErr(func(ctx *pulumi.Context) error {
		r := NewRegistrar(ctx)
		r.Component("persia:test:Component", "example").Add("example", &unknown{}, nil)
		return r.End()
	}, pulumi.WithMocks("project", "stack", &testkit.Recorder{}))
	assert.ErrorContains(t, err, "register example: ")
}
