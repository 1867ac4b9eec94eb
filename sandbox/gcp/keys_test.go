package gcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// filestoreWithKey returns a stack whose share is encrypted with a key.
func filestoreWithKey(t *testing.T) map[string]string {
	t.Helper()
	file := poolStackOf(t)
	file["persia:cluster"].(values)["deletionProtection"] = false
	file["persia:storage"] = []any{values{"name": "checkpoints", "size": "2560Gi", "filestore": values{
		"instance": "checkpoints", "share": "vol1", "location": "us-central1", "create": values{
			"tier": "ENTERPRISE", "kmsKey": "projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/k",
		},
	}}}
	return configuration(t, file)
}

// TestKeyOfAFreshProject: the service agent of Filestore does not exist before it is
// asked for, and IAM grants nothing to an account that does not exist.
func TestKeyOfAFreshProject(t *testing.T) {
	e := newStack(t, "../..")
	e.up(filestoreWithKey(t))
	assert.Empty(t, e.up(filestoreWithKey(t)), "a second up")
	assert.Empty(t, e.refresh(), "drift")
	e.destroy()
	identities, err := e.cloud.List("serviceusage.identity")
	require.NoError(t, err)
	assert.Len(t, identities, 1, "Google never deletes a service agent")
}
