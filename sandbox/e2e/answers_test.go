package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox/kubeprovider"
	"persia/sandbox/stackgen"
)

// assertAnswers: the API server answers every field that the program sends as it was
// sent. One that it answers otherwise is updated on every up, for ever: a port that
// is 0 because Go's zero value was sent and the API server puts in another. All
// objects of all stack files are held against it, as the provider compares them.
func assertAnswers(t *testing.T, provider *kubeprovider.Provider) {
	stacks := map[string]stackgen.Stack{}
	for _, pattern := range []string{"Pulumi.*.yaml", "examples/Pulumi.*.yaml"} {
		read, err := stackgen.ReadStacks(os.DirFS(repository), pattern)
		require.NoError(t, err)
		require.NotEmpty(t, read, pattern)
		maps.Copy(stacks, read)
	}
	held, unknown := 0, map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(stacks)) {
		t.Run(path, func(t *testing.T) {
			for _, object := range objectsOf(t, stacks[path], filepath.Join(repository, filepath.Dir(path))) {
				if answers(t, provider, object) {
					held++
				} else {
					unknown[string(object.urn.Type())] = true
				}
			}
		})
	}
	t.Logf("%d objects of %d stack files were held against the API server", held, len(stacks))
	assert.Greater(t, held, 50*len(stacks)/2)
	// GKE defines it, and there is none.
	assert.Equal(t, map[string]bool{"kubernetes:monitoring.googleapis.com/v1:PodMonitoring": true}, unknown)
}

// answers creates an object, for good where others are made in it or of it, and
// asserts that it has no difference from what was sent. It returns false for a kind
// that the API server does not know.
func answers(t *testing.T, provider *kubeprovider.Provider, object plannedObject) bool {
	t.Helper()
	keep := object.first()
	created, err := provider.Create(t.Context(), plugin.CreateRequest{
		URN: object.urn, Type: object.urn.Type(), Properties: object.inputs, Preview: !keep,
	})
	outputs := created.Properties
	if keep && err != nil && strings.Contains(err.Error(), "already exists") {
		// Another stack has it, with labels of its own.
		var updated plugin.UpdateResponse
		updated, err = provider.Update(t.Context(), plugin.UpdateRequest{
			URN: object.urn, Type: object.urn.Type(), NewInputs: object.inputs, Preview: true,
		})
		outputs = updated.Properties
	}
	if !assert.NoError(t, err, object.urn) {
		return true
	}
	if metadata := outputs["metadata"]; !metadata.IsObject() || !metadata.ObjectValue()["uid"].IsString() {
		return false
	}
	diff, err := provider.Diff(t.Context(), plugin.DiffRequest{
		URN: object.urn, Type: object.urn.Type(),
		OldInputs: object.inputs, OldOutputs: outputs, NewInputs: object.inputs,
	})
	require.NoError(t, err, object.urn)
	for path := range diff.DetailedDiff {
		parsed, err := resource.ParsePropertyPath(path)
		require.NoError(t, err)
		sent, _ := parsed.Get(resource.NewProperty(object.inputs))
		answered, _ := parsed.Get(resource.NewProperty(outputs))
		t.Errorf("%s: %s: sent %v, answered %v", object.urn, path, sent, answered)
	}
	return true
}

type plannedObject struct {
	urn    resource.URN
	inputs resource.PropertyMap
}

// first says whether other objects are made in this one, or of it.
func (o plannedObject) first() bool {
	kind := o.urn.Type().Name()
	return kind == "Namespace" || kind == "CustomResourceDefinition"
}

// objectsOf returns the Kubernetes objects of a stack, those first that others need.
func objectsOf(t *testing.T, stack stackgen.Stack, directory string) []plannedObject {
	t.Helper()
	registered, err := stackgen.Objects(stack, directory)
	require.NoError(t, err)
	require.NotEmpty(t, registered)
	var objects []plannedObject
	for _, object := range registered {
		group, version, grouped := strings.Cut(object.GetAPIVersion(), "/")
		if !grouped {
			group, version = "core", object.GetAPIVersion()
		}
		token := tokens.Type("kubernetes:" + group + "/" + version + ":" + object.GetKind())
		urn := resource.NewURN("stack", "persia", "", token, object.GetName())
		objects = append(objects, plannedObject{urn, resource.NewPropertyMapFromMap(object.Object)})
	}
	slices.SortStableFunc(objects, func(a, b plannedObject) int {
		switch {
		case a.first() == b.first():
			return 0
		case a.first():
			return -1
		default:
			return 1
		}
	})
	return objects
}
