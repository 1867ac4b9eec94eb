package persia

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPython runs the unit tests of the scripts, which need no processes and no real time. Images of
// PERSIA have Python 3.7.
func TestPython(t *testing.T) {
	for _, python := range []string{"python3", "python3.7"} {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			run := func(arguments ...string) ([]byte, error) {
				command := exec.Command(python, arguments...)
				command.Env = append(os.Environ(), "PYTHONPATH=.")
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
