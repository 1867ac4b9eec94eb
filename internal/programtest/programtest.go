// Package programtest runs the program, in tests, over a stack's configuration. The tests
// of all builders use it, so that they see a resource as it is registered for a stack file.
package programtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/config/input"
	"persia/internal/testkit"
	"persia/stack"
)

// ThisStack is the label of storage that the stack of the tests created.
const ThisStack = "persia-stack-a69fe188"

// Password is one that must not be seen in anything but a Secret.
const Password = "correct-horse-battery-staple"

// ProdCache is where the stack prod pulls images of Docker Hub from.
const ProdCache = "us-central1-docker.pkg.dev/my-project/persia-prod-docker-hub/"

// Deploy runs the program over a stack's configuration, where Google Cloud may have something already.
func Deploy(t testing.TB, configuration map[string]string, cloud ...testkit.Cloud) (*testkit.Recorder, error) {
	t.Helper()
	return Run(t, pulumi.RunInfo{Config: configuration}, append(cloud, nil)[0])
}

// MustDeploy is [Deploy], and fails the test at an error.
func MustDeploy(t testing.TB, configuration map[string]string, cloud ...testkit.Cloud) *testkit.Recorder {
	t.Helper()
	return testkit.Must(Deploy(t, configuration, cloud...))(t)
}

// DeployFile runs the program over a stack file in its folder. Its path is from the root.
func DeployFile(t testing.TB, path string) *testkit.Recorder {
	t.Helper()
	info := pulumi.RunInfo{Config: ReadStack(t, path), RootDirectory: filepath.Join(testkit.Root(t), filepath.Dir(path))}
	return testkit.Must(Run(t, info, nil))(t)
}

// Run runs the program where Google Cloud may have something already. The schema must take
// each configuration that the program takes.
func Run(t testing.TB, info pulumi.RunInfo, cloud testkit.Cloud) (*testkit.Recorder, error) {
	t.Helper()
	info.Project, info.Stack = config.Namespace, cmp.Or(info.Stack, "stack")
	if info.ConfigSecretKeys == nil {
		info.ConfigSecretKeys = secretKeys(info.Config)
	}
	recorder, err := testkit.Run(t, info, cloud, stack.Deploy)
	if _, measured := t.(*testing.B); err == nil && !measured {
		assertInSchema(t, info.Config)
	}
	return recorder, err
}

// secretKeys are the keys with a password or a private key in them, which are encrypted
// in each stack file of the tests.
func secretKeys(configuration map[string]string) []string {
	var keys []string
	for key, text := range configuration {
		if slices.Contains([]string{"persia:nats", "persia:pedl"}, key) && secretField.MatchString(text) {
			keys = append(keys, key)
		}
	}
	return keys
}

var secretField = regexp.MustCompile(`"(password|postgresqlPassword|key)":"[^"]`)

// assertInSchema checks that the schema accepts every stack that the program accepts.
func assertInSchema(t testing.TB, configuration map[string]string) {
	t.Helper()
	values := map[string]any{}
	for key, text := range configuration {
		var value any = text
		_ = json.Unmarshal([]byte(text), &value) // or it is a text
		values[key] = value
	}
	testkit.AssertInSchema(t, values)
}

// StackFiles are the paths, from the root, of the repository's stack files: its own and the examples.
func StackFiles(t testing.TB) []string {
	t.Helper()
	var paths []string
	for _, folder := range []string{".", "examples"} {
		found := testkit.Must(filepath.Glob(filepath.Join(testkit.Root(t), folder, "Pulumi.*.yaml")))(t)
		require.NotEmpty(t, found, folder)
		for _, file := range found {
			paths = append(paths, path.Join(folder, filepath.Base(file)))
		}
	}
	return paths
}

// ReadStack is a stack file after some edits, as Pulumi hands it to the program. Its path is from the root.
func ReadStack(t testing.TB, path string, edits ...testkit.Edits) map[string]string {
	t.Helper()
	file := testkit.Must(input.ReadStackFile(os.DirFS(testkit.Root(t)), path, config.Namespace))(t)
	require.NotEmpty(t, file.Config)
	keys := file.Config.Decrypted()
	for _, changes := range edits {
		changes.In(t, keys)
	}
	return keys.Texts()
}

// LeftToOperator is the stack prod with its job left to PERSIA's operator, after some edits.
func LeftToOperator(t testing.TB, edits ...testkit.Edits) map[string]string {
	t.Helper()
	left := testkit.Edits{
		"persia:images":         nil, // an image that is left out stays so
		"persia:operator.image": "registry.example.com/persia@" + config.ImagePause.Digest,
		"persia:storage[0]": testkit.Edits{"name": "workspace", "claim": "workspace", "size": "1Ti",
			"nfs": testkit.Edits{"server": "10.0.0.2", "path": "/workspace"}},
		"persia:storage[1]":     testkit.Edits{"name": "data", "size": "1Ti", "nfs": testkit.Edits{"server": "10.0.0.2", "path": "/data"}},
		"persia:jobs[0].engine": "operator",
	}
	for pool := range 5 {
		left[fmt.Sprintf("persia:nodePools[%d].taints", pool)] = nil
	}
	return ReadStack(t, "Pulumi.prod.yaml", append([]testkit.Edits{left}, edits...)...)
}
