package terraform

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox/gcp/google"
)

// TestInputsAreTheSchemas: a name or a type that pulumi-gcp 7.38 does not have is refused,
// however deep it is.
func TestInputsAreTheSchemas(t *testing.T) {
	e := newEngine(t, google.Settings{})
	for name, c := range map[string]struct {
		over values
		want string
	}{
		"as it is":            {nil, ""},
		"a name":              {values{"nodeCout": 2}, "nodeCout is not a property of"},
		"a name inside":       {values{"nodeConfig": values{"machinetype": "n2-standard-8"}}, "nodeConfig.machinetype is not a property of"},
		"a number as a text":  {values{"nodeCount": "2"}, "nodeCount is not a TypeInt"},
		"half a node":         {values{"nodeCount": 2.5}, "nodeCount is not a TypeInt"},
		"a text as a number":  {values{"nodeConfig": values{"machineType": 8}}, "nodeConfig.machineType is not a TypeString"},
		"a switch as a text":  {values{"nodeConfig": values{"gvnic": values{"enabled": "true"}}}, "nodeConfig.gvnic.enabled is not a TypeBool"},
		"one for many":        {values{"nodeLocations": "us-central1-a"}, "nodeLocations is not a list"},
		"many for one":        {values{"management": []any{values{"autoRepair": true}}}, "management is not an object"},
		"an element's":        {values{"nodeConfig": values{"taints": []any{values{"key": 1, "value": "a", "effect": "NO_SCHEDULE"}}}}, "nodeConfig.taints[0].key is not a TypeString"},
		"a text for an entry": {values{"nodeConfig": values{"oauthScopes": []any{true}}}, "nodeConfig.oauthScopes[0] is not a TypeString"},
	} {
		t.Run(name, func(t *testing.T) {
			inputs := resource.NewPropertyMapFromMap(with(nodePool, c.over))
			checked, err := e.Check(t.Context(), plugin.CheckRequest{URN: resource.NewURN("dev", "persia", "", nodePoolType, "pool"), News: inputs})
			require.NoError(t, err)
			var reasons []string
			for _, failure := range checked.Failures {
				reasons = append(reasons, failure.Reason)
			}
			if c.want == "" {
				assert.Empty(t, reasons)
				return
			}
			require.NotEmpty(t, reasons)
			assert.Contains(t, reasons[0], c.want)
		})
	}
}
