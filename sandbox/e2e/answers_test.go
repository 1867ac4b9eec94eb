package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/yaml"

	"persia/sandbox/kubeprovider"
)

// planned is a resource of a recorded plan.
type planned struct {
	URN    string         `json:"urn"`
	Inputs map[string]any `json:"inputs"`
}

// assertAnswers: the API server answers every field that the program sends as it was
// sent. One that it answers otherwise is updated on every up, for ever: a port that
// is 0 because Go's zero value was sent and the API server puts in another. All
// objects of all stack files are held against it, as the provider compares them.
func assertAnswers(t *testing.T, provider *kubeprovider.Provider) {
	plans, err := filepath.Glob(filepath.Join(repository, "tests", "testdata", "*.plan.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, plans)
	held, unknown := 0, map[string]bool{}
	for _, path := range plans {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".plan.yaml"), func(t *testing.T) {
			for _, object := range objectsOf(t, path) {
				if answers(t, provider, object) {
					held++
				} else {
					unknown[string(object.urn.Type())] = true
				}
			}
		})
	}
	t.Logf("%d objects of %d stack files were held against the API server", held, len(plans))
	assert.Greater(t, held, 50*len(plans)/2)
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

// objectsOf are the Kubernetes objects of a recorded plan, those first that others
// need.
func objectsOf(t *testing.T, path string) []plannedObject {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var objects []plannedObject
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var one planned
		if err := documents.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err, path)
		}
		urn := resource.URN("urn:pulumi:stack::persia::" + one.URN)
		if urn.Type().Package() != "kubernetes" {
			continue
		}
		// The plan does not show what is secret.
		if one.Inputs["data"] == "[secret]" {
			one.Inputs["data"] = map[string]any{".dockerconfigjson": "e30="}
		}
		objects = append(objects, plannedObject{urn, resource.NewPropertyMapFromMap(one.Inputs)})
	}
	require.NotEmpty(t, objects, path)
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
