package testkit

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Resource is one resource that the program registered.
type Resource struct {
	pulumi.MockResourceArgs
	URN string
}

// Dependencies are the URNs of the resources that the resource depends on.
func (r Resource) Dependencies() []string { return r.RegisterRPC.GetDependencies() }

// needs are the URNs of the resources that the engine creates before the resource, except its parent.
func (r Resource) needs() []string {
	needs := r.Dependencies()
	if r.Provider != "" {
		// A provider's URN, and its id.
		needs = append(slices.Clip(needs), r.Provider[:strings.LastIndex(r.Provider, "::")])
	}
	return needs
}

// At is the input at a path of names and numbers, like nodeConfig.guestAccelerators[0].type.
func At(t testing.TB, r Resource, path string) any {
	t.Helper()
	value := Found(t, r, path)
	require.NotNil(t, value, "%s has no %s: %v", r.URN, path, r.Inputs)
	return value
}

// Found is the input at a path, or nil.
func Found(t testing.TB, r Resource, path string) any {
	t.Helper()
	parsed, err := resource.ParsePropertyPath(path)
	require.NoError(t, err)
	value, _ := parsed.Get(resource.NewObjectProperty(r.Inputs))
	return value.Mappable()
}

// Object decodes a resource's inputs, as the Kubernetes object that they are.
func Object[T any](t testing.TB, r Resource) T {
	t.Helper()
	require.False(t, r.Inputs.ContainsUnknowns(), "inputs of %s", r.URN)
	text, err := json.Marshal(r.Inputs.Mappable())
	require.NoError(t, err)
	var object T
	require.NoError(t, yaml.UnmarshalStrict(text, &object), "inputs of %s", r.URN)
	return object
}

// Part decodes the input at a path. Fields that T lacks do not matter.
func Part[T any](t testing.TB, r Resource, path string) T {
	t.Helper()
	text, err := json.Marshal(At(t, r, path))
	require.NoError(t, err)
	var part T
	require.NoError(t, json.Unmarshal(text, &part), "%s of %s", path, r.URN)
	return part
}
