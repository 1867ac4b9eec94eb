package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKilled kills `make up` while it works: up goes on from there, and down
// takes away whatever there is.
func TestKilled(t *testing.T) {
	// A line of the progress, at which to kill.
	moments := map[string]string{
		"while the control plane starts": "control plane: starting",
		"while pods start":               "waiting for jsonpath",
	}
	for name, moment := range moments {
		t.Run("up again after a kill "+name, func(t *testing.T) {
			dir := t.TempDir()
			s := newSandbox(t, dir, "dev")
			killUp(t, dir, moment)
			_, err := s.Up(t.Context())
			require.NoError(t, err)
			c := newCluster(t, s)
			c.assertOn("gpu", 4, c.pods("persia", "persia_job=adult-income"))
			assert.Empty(t, upChanges(t, s))
			require.NoError(t, s.Destroy(t.Context()))
			c.assertEmpty()
		})
		t.Run("down after a kill "+name, func(t *testing.T) {
			dir := t.TempDir()
			s := newSandbox(t, dir, "dev")
			killUp(t, dir, moment)
			require.NoError(t, s.Down(t.Context()))
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, entries, "down leaves no file")
			assertNoProcess(t, dir)
		})
	}
}

// killUp runs the sandbox command's up and kills it, with the engine, when it
// prints moment.
func killUp(t *testing.T, dir, moment string) {
	t.Helper()
	up := exec.Command(executable, "up", "--stack", "dev", "--dir", dir, "--repository", repository, "--toolchain", binDir())
	up.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	up.Stderr = os.Stderr
	output, err := up.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, up.Start())
	seen := false
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.Contains(lines.Text(), moment) {
			seen = true
			require.NoError(t, syscall.Kill(-up.Process.Pid, syscall.SIGKILL))
			break
		}
	}
	_ = up.Wait()
	require.True(t, seen, "up never printed %q", moment)
}
