package gcp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config/input"
)

// stackFiles returns the stack files of the project and the examples, and some with settings
// that these lack.
func stackFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, folder := range []string{"../..", "../../examples", "testdata"} {
		found, err := filepath.Glob(filepath.Join(folder, "Pulumi.*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, found, folder)
		paths = append(paths, found...)
	}
	return paths
}

// stackFile returns the values of a stack file, with each encrypted text as it is written.
func stackFile(t *testing.T, path string) values {
	t.Helper()
	file, err := input.ReadStackFile(os.DirFS(filepath.Dir(path)), filepath.Base(path), "persia")
	require.NoError(t, err)
	return values(file.Config.Open(func(_ []any, ciphertext string) string { return ciphertext }))
}

func configuration(t *testing.T, file values) map[string]string {
	t.Helper()
	all := map[string]string{}
	for key, value := range file {
		text, isText := value.(string)
		if !isText {
			encoded, err := json.Marshal(value)
			require.NoError(t, err)
			text = string(encoded)
		}
		all[key] = text
	}
	return all
}

func newStack(t *testing.T, folder string) *engine {
	t.Helper()
	absolute, err := filepath.Abs(folder)
	require.NoError(t, err)
	return &engine{simulated: newGoogle(t), folder: absolute, state: map[resource.URN]known{}, objects: map[resource.URN]inCluster{}}
}

// TestStacks brings every stack file up: a second up finds nothing to do and sends nothing, before
// and after a refresh, and destroy leaves only the resources that outlive a stack.
func TestStacks(t *testing.T) {
	for _, path := range stackFiles(t) {
		t.Run(strings.Split(filepath.Base(path), ".")[1], func(t *testing.T) {
			e, file := newStack(t, filepath.Dir(path)), stackFile(t, path)
			e.up(configuration(t, file))
			e.cloud.Requests()
			assert.Empty(t, e.up(configuration(t, file)), "a second up")
			assert.Empty(t, e.effects(), "effects of a second up")
			assert.Empty(t, e.refresh(), "drift")
			assert.Empty(t, e.up(configuration(t, file)), "an up after a refresh")
			assert.Empty(t, e.effects(), "effects of an up after a refresh")
			assert.Empty(t, e.cloud.Requests(), "requests that change something")

			if cluster, made := file["persia:cluster"].(values); made && cluster["existing"] == nil {
				set("persia:cluster", "deletionProtection", false)(file)
				e.up(configuration(t, file))
			}
			e.destroy()
			assert.Empty(t, e.names(), "nodes")
			for _, kind := range []string{"container.cluster", "container.nodePool", "compute.subnetwork", "compute.router", "iam.serviceAccount"} {
				left, err := e.cloud.List(kind)
				require.NoError(t, err)
				assert.Empty(t, left, kind)
			}
		})
	}
}
