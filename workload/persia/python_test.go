package persia

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPython runs the unit tests of the scripts, which need no processes and no real time. Images of
// PERSIA have Python 3.7.
func TestPython(t *testing.T) {
	for _, python := range []string{"python3", "python3.7"} {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			if python != "python3" && exec.Command(python, "--version").Run() != nil {
				t.Skip("not on this machine")
			}
			command := exec.Command(python, "-B", "-m", "unittest", "discover", "-s", "python_test")
			command.Env = append(os.Environ(), "PYTHONPATH=.")
			output, err := command.CombinedOutput()
			require.NoError(t, err, "%s", output)
		})
	}
}
