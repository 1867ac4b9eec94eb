package background

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
	"persia/sandbox/process"
)

// executable writes a program that runs until it is ended.
func executable(t *testing.T, path, comment string) {
	t.Helper()
	// Replaced and not rewritten, as a compiler does: it may be running.
	require.NoError(t, os.WriteFile(path+".new", []byte("#!/bin/sh\n# "+comment+"\nexec sleep 300\n"), 0o755))
	require.NoError(t, os.Rename(path+".new", path))
}

func backgroundPID(t *testing.T, dir string) int {
	t.Helper()
	r, err := readRecord(dir)
	require.NoError(t, err)
	return r.Process.PID
}

func TestBackground(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agent")
	binary := filepath.Join(t.TempDir(), "program")
	executable(t, binary, "first")
	t.Cleanup(func() { assert.NoError(t, Stop(t.Context(), dir)) })

	assert.False(t, Running(dir))
	require.NoError(t, Stop(t.Context(), dir), "there is nothing to stop")
	require.NoError(t, Start(t.Context(), dir, binary, "a"))
	assert.True(t, Running(dir))
	first := backgroundPID(t, dir)

	require.NoError(t, Start(t.Context(), dir, binary, "a"))
	assert.Equal(t, first, backgroundPID(t, dir), "it runs already")

	executable(t, binary, "second")
	require.NoError(t, Start(t.Context(), dir, binary, "a"))
	second := backgroundPID(t, dir)
	assert.NotEqual(t, first, second, "its executable has changed")
	assert.False(t, process.Process{PID: first}.Running())

	require.NoError(t, Start(t.Context(), dir, binary, "b"))
	third := backgroundPID(t, dir)
	assert.NotEqual(t, second, third, "its arguments have changed")

	program := Program{Executable: binary, Args: []string{"b"}, Inputs: "first"}
	require.NoError(t, program.Start(t.Context(), dir))
	fourth := backgroundPID(t, dir)
	assert.NotEqual(t, third, fourth, "its inputs have changed")
	require.NoError(t, program.Start(t.Context(), dir))
	assert.Equal(t, fourth, backgroundPID(t, dir), "nothing has changed")

	require.NoError(t, syscall.Kill(fourth, syscall.SIGKILL))
	require.Eventually(t, func() bool { return !Running(dir) }, testkit.Patience, 10*time.Millisecond)
	require.NoError(t, program.Start(t.Context(), dir))
	assert.True(t, Running(dir), "it was killed")

	require.NoError(t, Stop(t.Context(), dir))
	assert.False(t, Running(dir))
	require.NoError(t, Stop(t.Context(), dir))
}

func TestBackgroundNeverStopsAStranger(t *testing.T) {
	dir := t.TempDir()
	stranger := exec.Command("sleep", "300")
	require.NoError(t, stranger.Start())
	t.Cleanup(func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	})
	content, err := json.Marshal(record{Process: process.Process{PID: stranger.Process.Pid, Start: "before a reboot"}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(recordFile(dir), content, 0o600))

	assert.False(t, Running(dir))
	require.NoError(t, Stop(t.Context(), dir))
	p, err := process.Find(stranger.Process.Pid)
	require.NoError(t, err)
	assert.True(t, p.Running())
}

func TestAProgramThatEndsAtOnceIsAnError(t *testing.T) {
	dir := t.TempDir()
	err := Start(t.Context(), dir, "/bin/sh", "-c", "echo no such flag >&2; exit 2")
	require.ErrorContains(t, err, "exit status 2")
	log, err := os.ReadFile(Log(dir))
	require.NoError(t, err)
	assert.Equal(t, "no such flag\n", string(log))
}

// TestAStartThatWasInterrupted: who is killed between the start of a program and the
// writing of its process leaves a program that the next command ends.
func TestAStartThatWasInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		next func(t *testing.T, dir, executable string) error
		want int
	}{
		"stop":  {func(t *testing.T, dir, _ string) error { return Stop(t.Context(), dir) }, 0},
		"start": {func(t *testing.T, dir, executable string) error { return Start(t.Context(), dir, executable, "300") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir, executable := t.TempDir(), filepath.Join(t.TempDir(), "program")
			sleep, err := exec.LookPath("sleep")
			require.NoError(t, err)
			require.NoError(t, os.Symlink(sleep, executable))
			r := record{Starting: true, Executable: executable, Args: []string{"300"}}
			require.NoError(t, writeRecord(dir, r))
			t.Cleanup(func() { assert.NoError(t, Stop(t.Context(), dir)) })
			left := exec.Command(executable, r.Args...)
			require.NoError(t, left.Start())
			t.Cleanup(func() {
				_ = left.Process.Kill()
				_ = left.Wait()
			})
			// The command line appears a moment after the program has been started.
			require.Eventually(t, func() bool { return Running(dir) }, testkit.Patience, time.Millisecond)

			require.NoError(t, c.next(t, dir, executable))
			running, err := r.processes()
			require.NoError(t, err)
			assert.Len(t, running, c.want)
			for _, p := range running {
				assert.NotEqual(t, left.Process.Pid, p.PID)
			}
		})
	}
}

// TestTheRecordIsWrittenFirst: of a program that is about to start, too, there is a record.
func TestTheRecordIsWrittenFirst(t *testing.T) {
	dir, executable := t.TempDir(), filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(executable, []byte("not executable"), 0o600))
	require.ErrorContains(t, Start(t.Context(), dir, executable, "a"), "permission denied")
	r, err := readRecord(dir)
	require.NoError(t, err)
	assert.True(t, r.Starting)
	assert.Equal(t, executable, r.Executable)
	assert.Equal(t, []string{"a"}, r.Args)
	require.NoError(t, Stop(t.Context(), dir))
}
