package workflows

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// archivePath is where a release has the compiled programs of the sandbox.
const archivePath = "/releases/latest/download/persia-toolchain.tar.gz"

// TestDevcontainer: a development container has the Go that the archive is compiled by, and takes the
// archive from the repository that was cloned, by whatever protocol.
func TestDevcontainer(t *testing.T) {
	var container struct {
		Features        map[string]struct{ Version string }
		OnCreateCommand string
	}
	text, err := os.ReadFile(filepath.Join(repository, ".devcontainer", "devcontainer.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &container))
	module, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	require.NoError(t, err)
	assert.Contains(t, string(module), "\ntoolchain go"+container.Features["ghcr.io/devcontainers/features/go:1"].Version+"\n")

	script, err := os.ReadFile(filepath.Join(repository, container.OnCreateCommand))
	require.NoError(t, err)
	for origin, want := range map[string]string{
		"https://github.com/acme/training":           "https://github.com/acme/training",
		"https://github.com/acme/training.git":       "https://github.com/acme/training",
		"git@github.com:acme/training.git":           "https://github.com/acme/training",
		"ssh://git@github.com/acme/training.git":     "https://github.com/acme/training",
		"https://git.example.com/acme/deep/training": "https://git.example.com/acme/deep/training",
	} {
		t.Run(origin, func(t *testing.T) {
			s := newScripts(t)
			s.program("make", `echo "$@"`)
			require.NoError(t, os.Mkdir(filepath.Join(s.dir, "scripts"), 0o700))
			path := s.file("scripts/toolchain.sh", string(script))
			for _, args := range [][]string{{"init", "--quiet"}, {"remote", "add", "origin", origin}} {
				git := exec.Command("git", args...)
				git.Dir = s.dir
				output, err := git.CombinedOutput()
				require.NoError(t, err, string(output))
			}
			output, err := exec.Command(path).CombinedOutput()
			require.NoError(t, err, string(output))
			assert.Equal(t, "toolchain TOOLCHAIN="+want+archivePath, strings.TrimSpace(string(output)))
		})
	}
}

// TestWorkflowsTakeCompiledPrograms: what runs the end-to-end tests takes the released programs, where
// the cache has none.
func TestWorkflowsTakeCompiledPrograms(t *testing.T) {
	_, texts := read(t, "workflows/*.yaml")
	for _, name := range []string{"workflows/ci.yaml", "workflows/nightly.yaml"} {
		assert.Contains(t, texts[name], "TOOLCHAIN: ${{ github.server_url }}/${{ github.repository }}"+archivePath, name)
	}
	// What is published is compiled from source.
	assert.NotContains(t, texts["workflows/release.yaml"], "TOOLCHAIN")
}
