package terraform

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/require"

	"persia/sandbox/gcp/google"
)

// plainAPI is Google's APIs and nothing else.
type plainAPI struct{ *google.Cloud }

func (a plainAPI) Create(_ context.Context, kind, name string, request google.Body) error {
	return a.Cloud.Create(kind, name, request)
}

func (a plainAPI) Update(_ context.Context, kind, name, field string, value any) error {
	return a.Cloud.Update(kind, name, field, value)
}

func (a plainAPI) Get(_ context.Context, kind, name string) (google.Body, error) {
	return a.Cloud.Get(kind, name)
}

func (a plainAPI) Delete(_ context.Context, kind, name string) error {
	return a.Cloud.Delete(kind, name)
}

type values = map[string]any

// engine does with single resources what Pulumi's engine does.
type engine struct {
	*testing.T
	*Provider
	cloud  *google.Cloud
	states map[tokens.Type]state
}

type state struct {
	id              resource.ID
	inputs, outputs resource.PropertyMap
}

func newEngine(t *testing.T, settings google.Settings) *engine {
	cloud := google.New(t.TempDir(), settings)
	provider, err := New(plainAPI{cloud})
	require.NoError(t, err)
	return &engine{t, provider, cloud, map[tokens.Type]state{}}
}

func (e *engine) urn(token tokens.Type) resource.URN {
	return resource.NewURN("dev", "persia", "", token, "main")
}

func (e *engine) check(token tokens.Type, program values) resource.PropertyMap {
	e.Helper()
	resp, err := e.Check(e.Context(), plugin.CheckRequest{
		URN: e.urn(token), News: resource.NewPropertyMapFromMap(program), Olds: e.states[token].inputs, RandomSeed: []byte("seed of a name that is long enough"),
	})
	require.NoError(e, err)
	require.Empty(e, resp.Failures)
	return resp.Properties
}

// plan returns what an up would do: "create", "same", "update" or "replace", and the
// properties that change.
func (e *engine) plan(token tokens.Type, program values, ignored ...string) (operation string, paths []string) {
	e.Helper()
	old, exists := e.states[token]
	if !exists {
		return "create", nil
	}
	resp, err := e.Diff(e.Context(), plugin.DiffRequest{
		URN: e.urn(token), ID: old.id, OldInputs: old.inputs, OldOutputs: old.outputs,
		NewInputs: e.check(token, program), IgnoreChanges: ignored,
	})
	require.NoError(e, err)
	paths = slices.Sorted(maps.Keys(resp.DetailedDiff))
	switch {
	case resp.Changes == plugin.DiffNone:
		return "same", nil
	case resp.Replace():
		return "replace", paths
	default:
		return "update", paths
	}
}

// up does what is planned. A replacement is not carried out.
func (e *engine) up(token tokens.Type, program values, ignored ...string) error {
	e.Helper()
	operation, _ := e.plan(token, program, ignored...)
	inputs := e.check(token, program)
	old := e.states[token]
	var err error
	switch operation {
	case "create":
		old.id, old.outputs, err = e.Create(e.Context(), token, inputs, false)
	case "update":
		old.outputs, err = e.Update(e.Context(), token, old.id, old.outputs, inputs, ignored, false)
	}
	if err == nil {
		e.states[token] = state{old.id, inputs, old.outputs}
	}
	return err
}

// refresh reads what there is into the state, and returns the properties that had
// drifted. Whether nothing is written as null or as an empty list is no drift.
func (e *engine) refresh(token tokens.Type) (drift []string) {
	e.Helper()
	old := e.states[token]
	now, err := e.Read(e.Context(), token, old.id, old.outputs)
	require.NoError(e, err)
	require.NotNil(e, now, "gone")
	before, after := filled(resource.NewProperty(old.outputs)).ObjectValue(), filled(resource.NewProperty(now)).ObjectValue()
	if diff := before.Diff(after); diff != nil {
		for path, change := range plugin.NewDetailedDiffFromObjectDiff(diff, false) {
			drift = append(drift, fmt.Sprint(path, " ", change.Kind))
		}
	}
	e.states[token] = state{old.id, e.Inputs(token, old.inputs, now), now}
	return drift
}

// filled leaves out zero values and empty collections.
func filled(value resource.PropertyValue) resource.PropertyValue {
	switch {
	case value.IsObject():
		object := resource.PropertyMap{}
		for key, element := range value.ObjectValue() {
			if element = filled(element); !element.IsNull() {
				object[key] = element
			}
		}
		if len(object) > 0 {
			return resource.NewProperty(object)
		}
	case value.IsArray():
		var list []resource.PropertyValue
		for _, element := range value.ArrayValue() {
			list = append(list, filled(element))
		}
		if len(list) > 0 {
			return resource.NewProperty(list)
		}
	case value.V != "" && value.V != 0.0 && value.V != false:
		return value
	}
	return resource.NewNullProperty()
}
