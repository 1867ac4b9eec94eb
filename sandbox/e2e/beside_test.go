package e2e

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"persia/sandbox"
)

// TestSandboxesDoNotMix brings up two stacks of one name at the same time, with manifests of the same name.
// Each reads the manifests of its own project, and authenticates to its own API server. The working folder
// and the environment of the process stay as they are.
func TestSandboxesDoNotMix(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "adult-income.yml"))
	require.NoError(t, err)
	manifest := strings.Replace(string(text), "name: adult-income\n", "name: other\n", 1)
	require.NotEqual(t, string(text), manifest)
	other := editStack(t, "dev")
	require.NoError(t, os.WriteFile(filepath.Join(other, "adult-income.yml"), []byte(manifest), 0o600))
	rewriteStack(t, other, "dev", func(configuration object) {
		configuration["persia:nats"] = object{}
		configuration["persia:jobs"] = []object{{"manifest": "adult-income.yml", "nodePool": "gpu"}}
	})

	var ups errgroup.Group
	bring := func(project string) *sandbox.Sandbox {
		dir := t.TempDir()
		s := openSandboxTo(t, io.MultiWriter(t.Output(), newWitness(t)), project, dir, "dev")
		takeDown(t, s, dir)
		ups.Go(func() error { return s.Apply(t.Context()) })
		return s
	}
	first, second := bring(manifestProject(t)), bring(other)
	require.NoError(t, ups.Wait())
	c := newCluster(t, second)
	c.assertOn("gpu", 4, c.rolePods("other"))
	assert.Empty(t, c.pods("persia", "persia_job=adult-income"))
	c = newCluster(t, first)
	assert.Empty(t, c.pods("persia", "persia_job=other"))
	c.assertManifests()
}

// witness checks the process whenever a command prints something.
type witness struct {
	t           *testing.T
	folder      string
	environment []string
}

func newWitness(t *testing.T) witness {
	t.Helper()
	folder, err := os.Getwd()
	require.NoError(t, err)
	return witness{t, folder, os.Environ()}
}

func (w witness) Write(text []byte) (int, error) {
	folder, err := os.Getwd()
	assert.NoError(w.t, err)
	assert.Equal(w.t, w.folder, folder, "the working folder of the process")
	assert.Equal(w.t, w.environment, os.Environ(), "the environment of the process")
	return len(text), nil
}
