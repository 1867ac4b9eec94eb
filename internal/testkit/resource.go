package testkit

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
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

// needs are the URNs of the resources that the engine creates before the resource, except its
// parent.
func (r Resource) needs() []string {
	needs := r.Dependencies()
	if r.Provider != "" {
		// A provider's URN, and its id.
		needs = append(slices.Clip(needs), r.Provider[:strings.LastIndex(r.Provider, "::")])
	}
	return needs
}

// At is the input at a path of names and numbers, like
// nodeConfig.guestAccelerators[0].type.
func At(t testing.TB, r Resource, path string) any {
	t.Helper()
	value, ok := Lookup(t, r, path)
	require.True(t, ok, "%s has no %s: %v", r.URN, path, r.Inputs)
	return value
}

// Found is the input at a path, or nil.
func Found(t testing.TB, r Resource, path string) any {
	t.Helper()
	value, _ := Lookup(t, r, path)
	return value
}

// Lookup is the input at a path, and whether there is one.
func Lookup(t testing.TB, r Resource, path string) (any, bool) {
	t.Helper()
	parsed, err := resource.ParsePropertyPath(path)
	require.NoError(t, err)
	value, ok := parsed.Get(resource.NewObjectProperty(r.Inputs))
	if !ok {
		return nil, false
	}
	return value.Mappable(), true
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

// AssertHides checks that a text contains no secret, neither plain nor in base64 as in a Secret.
func AssertHides(t testing.TB, what, text, secret string) {
	t.Helper()
	assert.False(t, strings.Contains(text, secret), "%s has a secret", what)
	// The number of bytes before the secret decides how base64 groups its bytes.
	for before := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
		assert.False(t, strings.Contains(text, encoded[4:len(encoded)-4]), "%s has a secret in base64", what)
	}
}
