package preflight

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// TestVersionsOfARelease: without go.mod, the versions come from the compiled program, here a
// smaller one than the released one.
func TestVersionsOfARelease(t *testing.T) {
	testkit.Processes(t)
	const module = "golang.org/x/mod"
	want, err := moduleVersions("../../..")
	require.NoError(t, err)
	require.NotEmpty(t, want[module])

	dir := t.TempDir()
	output, err := exec.Command("go", "build", "-o", filepath.Join(dir, "bin", "program"), "..").CombinedOutput()
	require.NoError(t, err, "%s", output)
	project := []byte("name: persia\nruntime: {name: go, options: {binary: bin/program}}\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Pulumi.yaml"), project, 0o600))
	got, err := moduleVersions(dir)
	require.NoError(t, err)
	assert.Equal(t, want[module], got[module])

	require.NoError(t, os.Remove(filepath.Join(dir, "bin", "program")))
	_, err = moduleVersions(dir)
	assert.ErrorContains(t, err, "read the versions of the program's modules")
}
