package programtest

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/config/input"
	"persia/internal/testkit"
)

// StackFiles are the paths, from the root, of the repository's stack files: its own and the examples.
func StackFiles(t testing.TB) []string {
	t.Helper()
	var paths []string
	for _, folder := range []string{".", "examples"} {
		found, err := filepath.Glob(filepath.Join(testkit.Root(t), folder, "Pulumi.*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, found, folder)
		for _, file := range found {
			paths = append(paths, path.Join(folder, filepath.Base(file)))
		}
	}
	return paths
}

// ReadStack is a stack file as Pulumi hands it to the program. Its path is from the root.
func ReadStack(t testing.TB, path string) map[string]string {
	t.Helper()
	file, err := input.ReadStackFile(os.DirFS(testkit.Root(t)), path, config.Namespace)
	require.NoError(t, err)
	require.NotEmpty(t, file.Config)
	return file.Config.Decrypted().Texts()
}

// Edit changes one key of a configuration.
func Edit(t testing.TB, configuration map[string]string, key string, change func(value any)) {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal([]byte(configuration[key]), &value))
	change(value)
	text, err := json.Marshal(value)
	require.NoError(t, err)
	configuration[key] = string(text)
}

// LeftToOperator is the stack prod with its job left to PERSIA's operator.
func LeftToOperator(t testing.TB) map[string]string {
	t.Helper()
	configuration := ReadStack(t, "Pulumi.prod.yaml")
	delete(configuration, "persia:images") // an image that is left out stays so
	configuration["persia:operator"] = `{"image": "registry.example.com/persia@` + config.ImagePause.Digest + `"}`
	Edit(t, configuration, "persia:nodePools", func(pools any) {
		for _, pool := range pools.([]any) {
			delete(pool.(map[string]any), "taints")
		}
	})
	configuration["persia:storage"] = `[
		{"name": "workspace", "claim": "workspace", "size": "1Ti", "nfs": {"server": "10.0.0.2", "path": "/workspace"}},
		{"name": "data", "size": "1Ti", "nfs": {"server": "10.0.0.2", "path": "/data"}}
	]`
	Edit(t, configuration, "persia:jobs", func(jobs any) {
		jobs.([]any)[0].(map[string]any)["engine"] = "operator"
	})
	return configuration
}
