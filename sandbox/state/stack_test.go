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

func TestDeletesFailed(t *testing.T) {
	for name, test := range map[string]struct {
		last string
		want bool
	}{
		"never up":                  {"", false},
		"an up":                     {`{"kind": "update", "result": "succeeded", "resourceChanges": {"delete": 1}}`, false},
		"an up that failed":         {`{"kind": "update", "result": "failed", "resourceChanges": {"create": 3}}`, false},
		"an up that failed halfway": {`{"kind": "update", "result": "failed", "resourceChanges": {"create": 3, "delete": 1}}`, true},
		"a destroy":                 {`{"kind": "destroy", "result": "succeeded", "resourceChanges": {"delete": 9}}`, false},
		"a destroy that failed":     {`{"kind": "destroy", "result": "failed"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			stack := InFolder(t.TempDir(), "persia", "dev")
			if test.last != "" {
				require.NoError(t, os.MkdirAll(string(stack), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(string(stack), "last.json"), []byte(test.last), 0o600))
			}
			got, err := stack.DeletesFailed()
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}
