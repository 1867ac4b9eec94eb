package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestWholeStacks has Pulumi's engine take stack files through their life: up, a preview, a
// refresh and a second up that change nothing, and destroy. The short form does so with
// three files: TestStacks in sandbox/gcp has all, without the engine.
func TestWholeStacks(t *testing.T) {
	t.Parallel()
	paths := []string{"Pulumi.dev.yaml", "Pulumi.prod.yaml", "examples/Pulumi.existing.yaml"}
	if *long {
		paths = stackFiles(t)
	}
	for _, path := range paths {
		path = filepath.Join(repository, path)
		name := strings.Split(filepath.Base(path), ".")[1]
		t.Run(name, func(t *testing.T) {
			file := readStackFile(t, path)
			e := newRealEngine(t, filepath.Dir(path), name, file)
			created := e.up()["create"]
			assert.Positive(t, created)
			e.cloud.Requests()
			written := e.written
			assert.Empty(t, e.preview(), "a preview")
			assert.Empty(t, e.refresh(), "drift")
			assert.Empty(t, e.up(), "a second up")
			assert.Empty(t, e.cloud.Requests(), "requests that change something")
			assert.Equal(t, written, e.written, "writes to the cluster")

			if cluster, made := file["persia:cluster"].(object); made && cluster["existing"] == nil && cluster["deletionProtection"] != false {
				cluster["deletionProtection"] = false
				e.configure(file)
				e.up()
			}
			deleted, err := e.destroy()
			require.NoError(t, err)
			assert.Equal(t, map[string]int{"delete": created}, deleted)
			nodes, err := e.nodes.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			assert.Empty(t, nodes.Items)
			for _, kind := range []string{"container.cluster", "container.nodePool", "compute.subnetwork", "compute.router", "iam.serviceAccount"} {
				left, err := e.cloud.List(kind)
				require.NoError(t, err)
				assert.Empty(t, left, kind)
			}
		})
	}
}

// stackFiles returns the paths of all stack files, from the repository's folder.
func stackFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"Pulumi.*.yaml", "examples/Pulumi.*.yaml"} {
		found, err := fs.Glob(os.DirFS(repository), pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		paths = append(paths, found...)
	}
	return paths
}

// TestVolumeWithoutItsClaim interrupts a destroy between a claim and its volume. The
// volume is Released and would never bind again: the next up makes it anew, once.
func TestVolumeWithoutItsClaim(t *testing.T) {
	t.Parallel()
	e := newRealEngine(t, repository, "dev", readStackFile(t, filepath.Join(repository, "Pulumi.dev.yaml")))
	e.up()
	e.stuck["PersistentVolume checkpoints-vol"] = true
	deleted, err := e.destroy()
	require.Error(t, err)
	assert.Positive(t, deleted["delete"])
	delete(e.stuck, "PersistentVolume checkpoints-vol")

	did := e.up()
	assert.Equal(t, 1, did["replace"], "%v", did)
	assert.Positive(t, did["create"], "the claim and the job")
	assert.Empty(t, e.up(), "a second up")
	_, err = e.destroy()
	require.NoError(t, err)
}

// readStackFile is a stack's configuration as it is written.
func readStackFile(t *testing.T, path string) object {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var file struct {
		Config object `json:"config"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	return file.Config
}
