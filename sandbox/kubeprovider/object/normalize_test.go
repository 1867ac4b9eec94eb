package object

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestPrune(t *testing.T) {
	tests := map[string]struct{ content, like, want string }{
		"a field that was added":     {`{a: 1, b: 2}`, `{a: 0}`, `{a: 1}`},
		"a field that is gone":       {`{b: 2}`, `{a: 0, b: 0}`, `{b: 2}`},
		"an object in an object":     {`{a: {b: 1, c: 2}}`, `{a: {b: 0}}`, `{a: {b: 1}}`},
		"an empty object":            {`{a: {b: 1}}`, `{a: {}}`, `{a: {}}`},
		"another type":               {`{a: {b: 1}}`, `{a: text}`, `{a: {b: 1}}`},
		"a list":                     {`{a: [{b: 1, c: 2}]}`, `{a: [{b: 0}]}`, `{a: [{b: 1}]}`},
		"an element that was added":  {`{a: [1, 2]}`, `{a: [1]}`, `{a: [1]}`},
		"an element that is gone":    {`{a: [1]}`, `{a: [1, 2]}`, `{a: [1]}`},
		"elements of other types":    {`{a: [1, 2]}`, `{a: [text]}`, `{a: [1, 2]}`},
		"nothing of what is asked":   {`{a: 1}`, `{b: 1}`, `{}`},
		"an element that came first": {`{a: [{n: x}, {n: y}]}`, `{a: [{n: y}]}`, `{a: [{n: x}]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var content, like, want map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(test.content), &content))
			require.NoError(t, yaml.Unmarshal([]byte(test.like), &like))
			require.NoError(t, yaml.Unmarshal([]byte(test.want), &want))
			assert.Equal(t, want, prune(content, like))
		})
	}
}

func TestNormalize(t *testing.T) {
	tests := map[string]struct{ obj, want string }{
		"a quantity": {
			`{apiVersion: v1, kind: ResourceQuota, metadata: {name: a, uid: u}, spec: {hard: {cpu: 1000m}}, status: {}}`,
			`{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {cpu: "1"}}}`,
		},
		"an unknown field": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dta: {k: v}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
		},
		"a kind without a type": {
			`{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, spec: {cpu: 1000m}}`,
			`{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, spec: {cpu: 1000m}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, objectIn(t, test.want), Normalize(objectIn(t, test.obj)))
		})
	}
}
