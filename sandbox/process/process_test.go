package process

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// start runs a command that is ended, and waited for, with the test.
func start(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func TestAnotherStartTimeIsAnotherProcess(t *testing.T) {
	cmd := start(t, "sleep", "300")
	stranger := testkit.Must(Find(cmd.Process.Pid))(t)
	stranger.Start-- // of a process that had this id before

	assert.False(t, stranger.Running())
	require.NoError(t, Stop(t.Context(), time.Second, stranger))
	assert.NoError(t, cmd.Process.Signal(syscall.Signal(0)), "Stop signalled a stranger")
}

func TestNoProcess(t *testing.T) {
	for _, pid := range []int{-1, 0, 1 << 30} {
		_, err := Find(pid)
		assert.ErrorIs(t, err, fs.ErrNotExist)
	}
}

func TestAZombieDoesNotRun(t *testing.T) {
	cmd := start(t, "sleep", "300")
	p := testkit.Must(Find(cmd.Process.Pid))(t)
	require.NoError(t, cmd.Process.Kill())
	// Nobody waits for it before the test ends.
	require.Eventually(t, func() bool { return !p.Running() }, testkit.Patience, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.Signal(0)), "the kernel still knows it")
}

func TestStop(t *testing.T) {
	tests := map[string]struct {
		script string
		grace  time.Duration
		want   syscall.Signal
	}{
		"asks first":           {"echo ready; exec sleep 300", testkit.Patience, syscall.SIGTERM},
		"kills who won't hear": {"trap '' TERM; echo ready; while :; do sleep 300 & wait; done", 100 * time.Millisecond, syscall.SIGKILL},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", test.script)
			// Its own process group, so that the test ends what the shell started.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			output := testkit.Must(cmd.StdoutPipe())(t)
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
			_, err := output.Read(make([]byte, 16))
			require.NoError(t, err)
			p := testkit.Must(Find(cmd.Process.Pid))(t)

			require.NoError(t, Stop(t.Context(), test.grace, p))
			_ = cmd.Wait()
			assert.Equal(t, test.want, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
		})
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock := testkit.Must(Lock(t.Context(), path))(t)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := Lock(ctx, path)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, os.Remove(path))
	unlock()
	unlock, err = Lock(t.Context(), path)
	require.NoError(t, err, "the holder may remove the file")
	unlock()
}
