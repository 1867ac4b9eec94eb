package workflows

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
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
		toolchains = append(toolchains, toolchainOf(t, module))
	}
	assert.Equal(t, toolchains[0], toolchains[1])
}

// toolchainOf returns the release of Go that a go.mod names.
func toolchainOf(t *testing.T, module string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, module))
	require.NoError(t, err)
	match := regexp.MustCompile(`(?m)^toolchain (go\d+\.\d+\.\d+)$`).FindSubmatch(text)
	require.NotNil(t, match, "%s has no toolchain", module)
	return string(match[1])
}

// TestChecksumsAreChecked: nothing turns off what Go compares modules with.
func TestChecksumsAreChecked(t *testing.T) {
	weakened := regexp.MustCompile(`GONOSUM|GOSUMDB|GOINSECURE|GOPRIVATE|GOFLAGS.*-mod=mod`)
	for _, pattern := range []string{"Makefile", "scripts/*", ".github/*/*", ".github/*/*/*"} {
		paths, err := filepath.Glob(filepath.Join(repository, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, paths, pattern)
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || info.IsDir() {
				continue
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.NotRegexp(t, weakened, string(text), path)
		}
	}
}

// TestReleasesAreAttested: each archive and its bill of materials, by the workflow that
// has made them, before they are published.
func TestReleasesAreAttested(t *testing.T) {
	workflows, _ := read(t, "workflows/release.yaml")
	release := workflows["workflows/release.yaml"].Jobs["release"]
	assert.Equal(t, "write", (*release.Permissions)["attestations"])
	assert.Equal(t, "write", (*release.Permissions)["id-token"])
	attested := false
	for _, s := range release.Steps {
		if strings.HasPrefix(s.Uses, "actions/attest-build-provenance@") {
			attested = true
			for _, files := range []string{"dist/*.tar.gz", "dist/*.cdx.json"} {
				assert.Contains(t, s.With["subject-path"], files)
			}
		}
		if strings.Contains(s.Run, "gh release create") {
			assert.True(t, attested, "published before it is attested")
			assert.Contains(t, s.Run, "dist/*.tar.gz dist/*.cdx.json dist/SHA256SUMS")
		}
	}
	assert.True(t, attested)
}
