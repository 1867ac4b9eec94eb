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
	log := testkit.Read(t, b.Log())
	assert.Equal(t, "no such flag\n", log)
}
