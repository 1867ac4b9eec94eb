package process

import (
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

// executable writes a program that runs until it is ended.
func executable(t *testing.T, path, comment string) {
	t.Helper()
	// Replaced and not rewritten, as a compiler does: it may be running.
	require.NoError(t, os.WriteFile(path+".new", []byte("#!/bin/sh\n# "+comment+"\nexec sleep 300\n"), 0o755))
	require.NoError(t, os.Rename(path+".new", path))
}

func TestBackground(t *testing.T) {
	b := Background(filepath.Join(t.TempDir(), "agent"))
	p := Program{Executable: filepath.Join(t.TempDir(), "program"), Args: []string{"a"}}
	t.Cleanup(func() { assert.NoError(t, b.Stop(t.Context())) })
	assert.False(t, b.Running())
	require.NoError(t, b.Stop(t.Context()), "there is nothing to stop")
	last := 0
	for _, step := range []struct {
		name   string
		change func()
		same   bool
	}{
		{"first", func() { executable(t, p.Executable, "first") }, false},
		{"it runs already", func() {}, true},
		{"its executable has changed", func() { executable(t, p.Executable, "second") }, false},
		{"its arguments have changed", func() { p.Args = []string{"b"} }, false},
		{"its inputs have changed", func() { p.Inputs = "first" }, false},
		{"it was killed", func() {
			require.NoError(t, syscall.Kill(last, syscall.SIGKILL))
			require.Eventually(t, func() bool { return !b.Running() }, testkit.Patience, 10*time.Millisecond)
		}, false},
	} {
		step.change()
		require.NoError(t, b.Start(t.Context(), p), step.name)
		assert.True(t, b.Running(), step.name)
		r, err := b.read()
		require.NoError(t, err)
		assert.Equal(t, step.same, r.Process.PID == last, step.name)
		if !step.same {
			assert.False(t, Process{PID: last}.Running(), step.name)
		}
		last = r.Process.PID
	}
	require.NoError(t, b.Stop(t.Context()))
	assert.False(t, b.Running())
}

func TestBackgroundNeverStopsAStranger(t *testing.T) {
	b, stranger := Background(t.TempDir()), start(t, "sleep", "300")
	require.NoError(t, b.write(record{Process: Process{PID: stranger.Process.Pid, Start: "before a reboot"}}))
	assert.False(t, b.Running())
	require.NoError(t, b.Stop(t.Context()))
	_, err := Find(stranger.Process.Pid)
	require.NoError(t, err)
}

func TestAProgramThatEndsAtOnceIsAnError(t *testing.T) {
	b := Background(t.TempDir())
	require.ErrorContains(t, b.Start(t.Context(), Program{Executable: "/bin/sh", Args: []string{"-c", "echo no such flag >&2; exit 2"}}), "exit status 2")
	log, err := os.ReadFile(b.Log())
	require.NoError(t, err)
	assert.Equal(t, "no such flag\n", string(log))
}

// TestAStartThatWasInterrupted: who is killed between the start of a program and the
// writing of its process leaves a program that the next command ends.
func TestAStartThatWasInterrupted(t *testing.T) {
	b, p := Background(t.TempDir()), Program{Executable: filepath.Join(t.TempDir(), "program"), Args: []string{"300"}}
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(sleep, p.Executable))
	require.NoError(t, b.write(record{Starting: true, Program: p}))
	left := start(t, p.Executable, p.Args...)
	// The command line appears a moment after the program has been started.
	require.Eventually(t, b.Running, testkit.Patience, time.Millisecond)
	require.NoError(t, b.Start(t.Context(), p))
	t.Cleanup(func() { assert.NoError(t, b.Stop(t.Context())) })
	running, err := record{Starting: true, Program: p}.processes()
	require.NoError(t, err)
	require.Len(t, running, 1)
	assert.NotEqual(t, left.Process.Pid, running[0].PID)
}
