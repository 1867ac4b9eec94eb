package object

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOutputsAreSecretWhereInputsWere(t *testing.T) {
	text := resource.NewProperty[string]
	inputs := properties(t, `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {hostname: h, containers: [{name: c, image: i}]}}`)
	spec := inputs["spec"].ObjectValue()
	spec["hostname"] = resource.MakeSecret(text("h"))
	spec["containers"].ArrayValue()[0].ObjectValue()["image"] = resource.MakeSecret(text("i"))

	obj, err := Of(inputs)
	require.NoError(t, err)
	outputs := Outputs(obj, inputs)
	spec = outputs["spec"].ObjectValue()
	assert.Equal(t, resource.MakeSecret(text("h")), spec["hostname"])
	assert.True(t, spec["containers"].IsSecret())
	assert.Equal(t, properties(t, `{name: a}`), outputs["metadata"].ObjectValue())

	assert.False(t, resource.NewProperty(Reveal(outputs)).ContainsSecrets())
	assert.True(t, outputs["spec"].ContainsSecrets(), "revealing must leave the properties as they are")
}

func TestContentOfASecretIsSecret(t *testing.T) {
	inputs := properties(t, `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}`)
	obj, err := Of(inputs)
	require.NoError(t, err)
	outputs := Outputs(obj, inputs)
	assert.Equal(t, resource.MakeSecret(resource.NewProperty(properties(t, `{k: dg==}`))), outputs["data"])
	assert.Equal(t, resource.MakeSecret(resource.NewProperty(properties(t, `{k: v}`))), outputs["stringData"])
	assert.False(t, outputs["metadata"].ContainsSecrets())
}
