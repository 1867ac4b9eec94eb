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
	for name, test := range map[string]struct {
		script string
		grace  time.Duration
		want   syscall.Signal
	}{
		"asks first":           {"echo ready; exec sleep 300", testkit.Patience, syscall.SIGTERM},
		"kills who won't hear": {"trap '' TERM; echo ready; while :; do sleep 300 & wait; done", 100 * time.Millisecond, syscall.SIGKILL},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", test.script)
			// Its own process group, so that the test ends what the shell started.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			output := testkit.Must(cmd.StdoutPipe())(t)
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
			testkit.Must(output.Read(make([]byte, 16)))(t)
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

// executable writes a program that runs until it is ended.
func executable(t *testing.T, path, comment string) {
	t.Helper()
	sleep := testkit.Must(exec.LookPath("sleep"))(t)
	text := testkit.Must(os.ReadFile(sleep))(t)
	// Replaced and not rewritten, as a compiler does: it may be running.
	require.NoError(t, os.WriteFile(path+".new", append(text, comment...), 0o755))
	require.NoError(t, os.Rename(path+".new", path))
}

func TestBackground(t *testing.T) {
	b := Background(filepath.Join(t.TempDir(), "agent"))
	p := Program{Executable: filepath.Join(t.TempDir(), "program"), Args: []string{"300"}}
	t.Cleanup(func() { assert.NoError(t, b.Stop(t.Context())) })
	assert.False(t, b.Running())
	require.NoError(t, b.Stop(t.Context()), "there is nothing to stop")
	var last Process
	for _, step := range []struct {
		name   string
		change func()
		same   bool
	}{
		{"first", func() { executable(t, p.Executable, "first") }, false},
		{"it runs already", func() {}, true},
		{"its executable has changed", func() { executable(t, p.Executable, "second") }, false},
		{"its arguments have changed", func() { p.Args = []string{"301"} }, false},
		{"its inputs have changed", func() { p.Inputs = "first" }, false},
		{"it was killed", func() {
			require.NoError(t, syscall.Kill(last.PID, syscall.SIGKILL))
			require.Eventually(t, func() bool { return !b.Running() }, testkit.Patience, 10*time.Millisecond)
		}, false},
	} {
		step.change()
		require.NoError(t, b.Start(t.Context(), p), step.name)
		_, running, err := b.read()
		require.NoError(t, err)
		require.Len(t, running, 1, step.name)
		assert.Equal(t, step.same, running[0] == last, step.name)
		if !step.same {
			assert.False(t, last.Running(), step.name)
		}
		last = running[0]
	}
	stranger := start(t, "sleep", p.Args...)
	require.NoError(t, b.Stop(t.Context()))
	assert.False(t, b.Running())
	_, err := Find(stranger.Process.Pid)
	require.NoError(t, err, "it is no other program that it stops")
}

func TestAProgramThatEndsAtOnceIsAnError(t *testing.T) {
	b := Background(t.TempDir())
	require.ErrorContains(t, b.Start(t.Context(), Program{Executable: "/bin/sh", Args: []string{"-c", "echo no such flag >&2; exit 2"}}), "exit status 2")
	assert.Equal(t, "no such flag\n", testkit.Read(t, b.Log()))
}
