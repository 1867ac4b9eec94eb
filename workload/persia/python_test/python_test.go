// Package python_test runs the unit tests of the Python in pods. It imports nothing of the program, so that Go runs them again
// only when a file that they read has changed.
package python_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPython needs no processes and no real time. Images of PERSIA have Python 3.7.
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
	histories, _ := cmp.Or(os.Getenv("HISTORIES"), "300"), os.Getenv("SEED") // which the cache notices, too
	for _, python := range []string{"python3", "python3.7"} {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			run := func(arguments ...string) ([]byte, error) {
				command := exec.Command(python, arguments...)
				command.Dir = ".."
				command.Env = append(os.Environ(), "PYTHONPATH=.", "HISTORIES="+histories)
				if python != "python3" {
					// pyenv runs a release that is not its default only when it is told which.
					command.Env = append(command.Env, "PYENV_VERSION="+strings.TrimPrefix(python, "python"), "HISTORIES=30")
				}
				return command.CombinedOutput()
			}
			if _, err := run("--version"); err != nil && python != "python3" {
				t.Skipf("%s is not on this machine; make lint checks the types for it", python)
			}
			output, err := run("-B", "-m", "unittest", "discover", "-s", "python_test")
			require.NoError(t, err, "%s", output)
		})
	}
}
