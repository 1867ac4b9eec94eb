package nodepools

import (
	"maps"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/gcp"
	"persia/sandbox/node"
)

func TestARealPoolHasOneNode(t *testing.T) {
	tests := map[string]struct {
		count  int
		config map[string]any
		err    string
	}{
		"one":       {count: 1},
		"two":       {count: 2, err: "node pool train: a real pool has one node"},
		"two zones": {count: 1, config: map[string]any{"nodeLocations": []any{"us-central1-a", "us-central1-b"}}, err: "in 2 zones"},
		"no number": {config: map[string]any{"nodeCount": nil}, err: "set nodes: 1 without autoscaling"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config := map[string]any{
				"cluster": "persia", "name": "train", "nodeLocations": []any{"us-central1-c"}, "nodeCount": test.count,
				"nodeConfig": map[string]any{
					"machineType": "n2-standard-4",
					"taints":      []any{map[string]any{"key": "team", "value": "a", "effect": "NO_SCHEDULE"}},
				},
			}
			maps.Copy(config, test.config)
			inputs := resource.NewPropertyMapFromMap(config)
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
