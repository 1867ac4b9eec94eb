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

// TestSandboxesDoNotMix brings up two stacks of one name at the same time. Each reads the
// manifest of its own project, and authenticates to its own API server. The working folder
// and the environment of the process stay as they are.
func TestSandboxesDoNotMix(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "adult-income.yml"))
	require.NoError(t, err)
	jobs := []string{"first", "second"}
	sandboxes := map[string]*sandbox.Sandbox{}
	var ups errgroup.Group
	for _, job := range jobs {
		project, dir := editStack(t, "dev"), t.TempDir()
		manifest := strings.Replace(string(text), "name: adult-income\n", "name: "+job+"\n", 1)
		require.NotEqual(t, string(text), manifest)
		require.NoError(t, os.WriteFile(filepath.Join(project, "job.yml"), []byte(manifest), 0o600))
		rewriteStack(t, project, "dev", func(configuration object) {
			configuration["persia:nats"] = object{}
			configuration["persia:jobs"] = []object{{"manifest": "job.yml", "nodePool": "gpu"}}
		})
		s := openSandboxTo(t, io.MultiWriter(t.Output(), newWitness(t)), project, dir, "dev")
		takeDown(t, s, dir)
		sandboxes[job] = s
		ups.Go(func() error { return s.Apply(t.Context()) })
	}
	require.NoError(t, ups.Wait())
	for job, s := range sandboxes {
		c := newCluster(t, s)
		c.assertOn("gpu", 4, c.rolePods(job))
		for _, other := range jobs {
			if other != job {
				assert.Empty(t, c.pods("persia", "persia_job="+other))
			}
		}
	}
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
