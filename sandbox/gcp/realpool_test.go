package gcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/gcp"
	"persia/sandbox/node"
)

func TestARealPoolHasOneNode(t *testing.T) {
	tests := map[string]struct {
		count  int
		config values
		err    string
	}{
		"one":       {count: 1},
		"two":       {count: 2, err: "node pool train: a real pool has one node"},
		"two zones": {count: 1, config: values{"nodeLocations": []any{"us-central1-a", "us-central1-b"}}, err: "in 2 zones"},
		"no number": {config: values{"nodeCount": nil}, err: "set nodes: 1 without autoscaling"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inputs := pool("train", test.count, values{"taints": []any{values{"key": "team", "value": "a", "effect": "NO_SCHEDULE"}}})
			for key, value := range properties(test.config) {
				inputs[key] = value
			}
			p, err := newNodePool(inputs, nil)
			require.NoError(t, err)
			err = p.makeReal()
			if test.err != "" {
				assert.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			made := p.node("us-central1-c", 0)
			assert.Equal(t, map[string]string{node.Annotation: "real"}, made.Annotations, "kwok leaves it alone")
			assert.Empty(t, made.Status.Allocatable, "the kubelet's to say")
			assert.Equal(t, "train", made.Labels[gcp.LabelNodePool])
			assert.Len(t, made.Spec.Taints, 1)
		})
	}
}
