package sandbox

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox/process"
)

// TestImportCreates: of the operations under way when the engine was killed, the
// creates of Kubernetes objects become resources, and all else stays as it was.
func TestImportCreates(t *testing.T) {
	const claim = "urn:pulumi:dev::persia::kubernetes:core/v1:PersistentVolumeClaim::claim"
	state, err := readDeployment([]byte(`{
		"manifest": {"time": "now"},
		"resources": [{"urn": "urn:pulumi:dev::persia::pulumi:pulumi:Stack::persia-dev"}],
		"pending_operations": [
			{"type": "creating", "resource": {"urn": "` + claim + `", "custom": true, "parent": "p", "inputs": {
				"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim", "namespace": "persia"}}}},
			{"type": "deleting", "resource": {"urn": "urn:pulumi:dev::persia::kubernetes:core/v1:Secret::other"}},
			{"type": "creating", "resource": {"urn": "urn:pulumi:dev::persia::gcp:storage/bucket:Bucket::bucket"}}
		]}`))
	require.NoError(t, err)
	created, err := state.takeCreates()
	require.NoError(t, err)
	require.Len(t, created, 1)
	assert.Equal(t, resource.ID("persia/claim"), created[0].id)
	require.NoError(t, state.add(created[0]))

	text, err := state.write()
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
	require.Len(t, written.Resources, 2)
	assert.Equal(t, "persia/claim", written.Resources[1]["id"])
	assert.Equal(t, "p", written.Resources[1]["parent"])
	assert.Len(t, written.Pending, 2)
}

// TestAwaitOwners: an engine that still writes the state is waited for. A number that
// another program has by now is not.
func TestAwaitOwners(t *testing.T) {
	dir := t.TempDir()
	pulumi := filepath.Join(dir, "pulumi")
	require.NoError(t, os.Symlink("/bin/sleep", pulumi))
	lock := func(pid int) string {
		path := filepath.Join(dir, strconv.Itoa(pid)+".json")
		require.NoError(t, os.WriteFile(path, []byte(`{"pid": `+strconv.Itoa(pid)+`}`), 0o600))
		return path
	}
	engine := exec.Command(pulumi, "1")
	require.NoError(t, engine.Start())
	go func() { _ = engine.Wait() }()
	require.NoError(t, awaitOwners(t.Context(), []string{lock(engine.Process.Pid), lock(1), filepath.Join(dir, "gone.json")}))
	_, err := process.Find(engine.Process.Pid)
	assert.ErrorIs(t, err, fs.ErrNotExist, "the engine has ended")
}
