package state

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPendingOperations: of the operations under way when the engine was killed, the
// creates of what exists become resources, and all else stays as it was.
func TestPendingOperations(t *testing.T) {
	const claim = "urn:pulumi:dev::persia::kubernetes:core/v1:PersistentVolumeClaim::claim"
	state, err := ReadDeployment([]byte(`{
		"manifest": {"time": "now"},
		"resources": [
			{"urn": "urn:pulumi:dev::persia::pulumi:pulumi:Stack::persia-dev"},
			{"urn": "urn:pulumi:dev::persia::gcp:compute/disk:Disk::disk", "custom": true, "id": "disk"},
			{"urn": "urn:pulumi:dev::persia::pulumi:providers:kubernetes::kubernetes", "custom": true, "id": "1"},
			{"urn": "urn:pulumi:dev::persia::kubernetes:core/v1:Secret::other", "custom": true, "id": "persia/other", "inputs": {"kind": "Secret"}}
		],
		"pending_operations": [
			{"type": "creating", "resource": {"urn": "` + claim + `", "custom": true, "parent": "p", "inputs": {
				"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim", "namespace": "persia"}}}},
			{"type": "deleting", "resource": {"urn": "urn:pulumi:dev::persia::kubernetes:core/v1:Secret::other"}},
			{"type": "creating", "resource": {"urn": "urn:pulumi:dev::persia::gcp:storage/bucket:Bucket::bucket"}},
			{"type": "creating", "resource": {"urn": "urn:pulumi:dev::persia::pulumi:providers:kubernetes::kubernetes"}}
		]}`))
	require.NoError(t, err)
	all, err := state.Resources()
	require.NoError(t, err)
	objects := slices.DeleteFunc(all, func(r Resource) bool { return !r.IsObject() })
	require.Len(t, objects, 1)
	assert.EqualValues(t, "persia/other", objects[0].ID)
	assert.Equal(t, "Secret", objects[0].Inputs["kind"].StringValue())
	created, err := state.TakeCreates()
	require.NoError(t, err)
	require.Len(t, created, 2)
	created[0].ID = "persia/claim"
	require.NoError(t, state.Add(created[0]))

	text, err := state.Write()
	require.NoError(t, err)
	var written struct {
		Manifest  map[string]string `json:"manifest"`
		Resources []map[string]any  `json:"resources"`
		Pending   []struct {
			Type string `json:"type"`
		} `json:"pending_operations"`
	}
	require.NoError(t, json.Unmarshal(text, &written))
	assert.Equal(t, "now", written.Manifest["time"])
	require.Len(t, written.Resources, 5)
	assert.Equal(t, "persia/claim", written.Resources[4]["id"])
	assert.Equal(t, "p", written.Resources[4]["parent"])
	assert.Equal(t, written.Resources[4]["inputs"], written.Resources[4]["outputs"])
	assert.Len(t, written.Pending, 2)
}
