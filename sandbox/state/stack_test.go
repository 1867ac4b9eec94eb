package state

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStack(t *testing.T) {
	cases := map[string]struct {
		state              string
		resources, pending bool
	}{
		"never up":                   {"", false, false},
		"a stack just created":       {`{"version": 3, "deployment": {}}` + "\n", false, false},
		"resources":                  {`{"version": 3, "deployment": {"resources": [{"urn": "a"}]}}` + "\n", true, false},
		"a resource in the making":   {`{"version": 3, "deployment": {"pending_operations": [{"type": "creating"}]}}` + "\n", true, true},
		"the journal of a killed up": {`{"version": 3, "deployment": {}}` + "\n" + `{"kind": 0}` + "\n", true, false},
		"half an entry":              {`{"version": 3, "deployment": {}}` + "\n" + `{"ki`, true, false},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			stack := InFolder(t.TempDir(), "persia", "dev")
			if test.state != "" {
				require.NoError(t, os.MkdirAll(string(stack), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(string(stack), "state.jsonl"), []byte(test.state), 0o600))
			}
			got, err := stack.HasResources()
			require.NoError(t, err)
			assert.Equal(t, test.resources, got, "resources")
			got, err = stack.Pending()
			require.NoError(t, err)
			assert.Equal(t, test.pending, got, "pending operations")
		})
	}
}
