package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox"
)

// testDownWithoutControlPlane damages what etcd keeps of a stack, as a machine does that loses power.
// Down takes the rest of the stack away, and the next up starts from nothing.
func testDownWithoutControlPlane(t *testing.T, s *sandbox.Sandbox, dir string) {
	killAll(t, filepath.Join(dir, "dev", "cluster"))
	files, err := filepath.Glob(filepath.Join(dir, "dev", "cluster", "kwok", "clusters", "*", "etcd", "member", "snap", "db"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte(strings.Repeat("damaged", 10000)), 0o600))

	// It never comes back.
	s.Cluster().ResumeTimeout = 10 * time.Second
	require.NoError(t, s.Down(t.Context()))
	assertNoProcess(t, dir)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries, "down leaves nothing, neither of the stack nor in the simulated Google Cloud")
	require.NoError(t, s.Apply(t.Context()))
}

// killAll kills the processes that have a path of dir in their command line, and waits
// until they are gone.
func killAll(t testing.TB, dir string) {
	t.Helper()
	for processes := sandboxProcesses(t, dir); len(processes) > 0; processes = sandboxProcesses(t, dir) {
		for _, p := range processes {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}
