// Package python_test runs the unit tests of the Python in pods. It imports nothing of the program, so that Go runs them again
// only when a file that they read has changed.
package python_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPython needs no processes and no real time.
func TestPython(t *testing.T) {
	for _, pattern := range []string{"../*.py", "*.py", "../*.yaml", "../testdata/*.json", "../../../capacity/testdata/*.json", "../../../examples/*/*.py"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			_, err := os.ReadFile(file) // for Go's cache of results
			require.NoError(t, err)
		}
	}
	_ = os.Getenv("SEED") // which the cache notices, too
	run(t, "python3", "HISTORIES="+cmp.Or(os.Getenv("HISTORIES"), "300"))
}

// TestPython37 is [TestPython] with the release in PERSIA's images. Where it is missing, make lint checks the types for it.
func TestPython37(t *testing.T) {
	if testing.Short() {
		t.Skip("make e2e runs it")
	}
	if exec.Command("env", "PYENV_VERSION=3.7", "python3.7", "--version").Run() != nil {
		t.Skip("python3.7 is not on this machine")
	}
	// pyenv runs a release that is not its default only when it is told which.
	run(t, "python3.7", "PYENV_VERSION=3.7", "HISTORIES=30")
}

func run(t *testing.T, python string, env ...string) {
	command := exec.Command(python, "-B", "-m", "unittest", "discover", "-s", "python_test")
	command.Dir = ".."
	command.Env = append(append(os.Environ(), "PYTHONPATH=."), env...)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
}
