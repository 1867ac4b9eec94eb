package workflows

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestVulnerabilitiesAreLookedFor: with each pull request, in both modules, by a version
// that no tag can move.
func TestVulnerabilitiesAreLookedFor(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, ".github", "workflows", "ci.yaml"))
	require.NoError(t, err)
	assert.Len(t, regexp.MustCompile(`go run golang\.org/x/vuln/cmd/govulncheck@v\d+\.\d+\.\d+ \./\.\.\.`).FindAll(text, -1), 2)
	assert.Regexp(t, `working-directory: sandbox`, string(text))
}

// TestOneToolchain: every machine compiles with the same release of Go.
func TestOneToolchain(t *testing.T) {
	var toolchains []string
	for _, module := range []string{"go.mod", filepath.Join("sandbox", "go.mod")} {
		text, err := os.ReadFile(filepath.Join(repository, module))
		require.NoError(t, err)
		match := regexp.MustCompile(`(?m)^toolchain (go\d+\.\d+\.\d+)$`).FindSubmatch(text)
		require.NotNil(t, match, "%s has no toolchain", module)
		toolchains = append(toolchains, string(match[1]))
	}
	assert.Equal(t, toolchains[0], toolchains[1])
}
