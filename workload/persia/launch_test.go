package persia

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// launch is launch.sh at work.
type launch struct {
	t        *testing.T
	process  *exec.Cmd
	log      string
	finished string
	ended    chan struct{}
}

// start runs launch.sh with a stand-in for the program that it starts, a script of
// bash. dir outlives the replica's pod.
func start(t *testing.T, dir, standIn string, env ...string) *launch {
	t.Helper()
	return startCommandOf(t, dir, env, "bash", "-c", standIn, "stand-in", "an argument")
}

func startCommandOf(t *testing.T, dir string, env []string, command ...string) *launch {
	t.Helper()
	script, err := filepath.Abs("launch.sh")
	require.NoError(t, err)
	l := &launch{t: t, log: filepath.Join(t.TempDir(), "log"), finished: filepath.Join(dir, "job", "nn-worker-0"), ended: make(chan struct{})}
	l.process = exec.Command("bash", append([]string{script}, command...)...)
	l.process.Dir = dir
	l.process.Env = append(append(os.Environ(), "PERSIA_FINISHED_FILE="+l.finished), env...)
	log, err := os.Create(l.log)
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	l.process.Stdout, l.process.Stderr = log, log
	require.NoError(t, l.process.Start())
	go func() {
		_ = l.process.Wait()
		close(l.ended)
	}()
	t.Cleanup(func() {
		// What it has started ends with it only if it is asked.
		_ = l.process.Process.Signal(syscall.SIGTERM)
		l.status()
	})
	return l
}

// status waits for the end, and returns the exit status.
func (l *launch) status() int {
	l.t.Helper()
	select {
	case <-l.ended:
		return l.process.ProcessState.ExitCode()
	case <-time.After(20 * time.Second):
		l.t.Fatal("launch.sh has not ended")
		return 0
	}
}

// says waits until launch.sh says something.
func (l *launch) says(text string) {
	l.t.Helper()
	require.Eventually(l.t, func() bool { return l.said(text) > 0 }, 20*time.Second, 10*time.Millisecond, "%q", text)
}

// said is how often launch.sh has said something.
func (l *launch) said(text string) int {
	l.t.Helper()
	log, err := os.ReadFile(l.log)
	require.NoError(l.t, err)
	return strings.Count(string(log), text)
}

// awaits waits until a file is there.
func (l *launch) awaits(file string) {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		_, err := os.Stat(file)
		return err == nil
	}, 20*time.Second, 10*time.Millisecond, "%s", file)
}

// stop sends what Kubernetes sends to a pod that is to go.
func (l *launch) stop() {
	l.t.Helper()
	require.NoError(l.t, l.process.Process.Signal(syscall.SIGTERM))
}

func TestLaunchPassesArguments(t *testing.T) {
	dir := t.TempDir()
	l := start(t, dir, `echo "$0: $1" >arguments`)
	l.awaits(l.finished)
	l.stop()
	assert.Zero(t, l.status())
	text, err := os.ReadFile(filepath.Join(dir, "arguments"))
	require.NoError(t, err)
	assert.Equal(t, "stand-in: an argument\n", string(text))
}

// TestLaunchAfterSuccess: the command runs once, and the replica idles, also in
// another pod.
func TestLaunchAfterSuccess(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		l := start(t, dir, `echo run >>runs; exit 0`)
		l.says("idling")
		assert.FileExists(t, l.finished)
		l.stop()
		assert.Zero(t, l.status(), "idling ends with success")
	}
	text, err := os.ReadFile(filepath.Join(dir, "runs"))
	require.NoError(t, err)
	assert.Equal(t, "run\n", string(text))
}

// TestLaunchAfterFailure: the failure is the container's, and the command runs
// again.
func TestLaunchAfterFailure(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		l := start(t, dir, `echo run >>runs; exit 42`)
		assert.Equal(t, 42, l.status())
		assert.NoFileExists(t, l.finished)
		l.says("failed with status 42")
	}
	text, err := os.ReadFile(filepath.Join(dir, "runs"))
	require.NoError(t, err)
	assert.Equal(t, "run\nrun\n", string(text))
}

func TestLaunchKilledCommand(t *testing.T) {
	l := start(t, t.TempDir(), `kill -KILL $$`)
	assert.Equal(t, 128+int(syscall.SIGKILL), l.status())
	assert.NoFileExists(t, l.finished)
}

// TestLaunchStopped: SIGTERM reaches the command, which gets its time. It has not
// finished, whatever it ends with.
func TestLaunchStopped(t *testing.T) {
	for name, test := range map[string]struct {
		standIn string
		status  int
	}{
		"a command that saves and ends with success": {`trap 'sleep 0.2; touch saved; exit 0' TERM; touch ready; while :; do sleep 0.05; done`, 0},
		"a command that says it was stopped":         {`trap 'touch saved; exit 143' TERM; touch ready; while :; do sleep 0.05; done`, 143},
		"a command that knows no signals":            {`touch ready saved; exec sleep 60`, 143},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := start(t, dir, test.standIn)
			l.awaits(filepath.Join(dir, "ready"))
			l.stop()
			assert.Equal(t, test.status, l.status())
			assert.FileExists(t, filepath.Join(dir, "saved"))
			assert.NoFileExists(t, l.finished)
		})
	}
}

// TestLaunchStopsTheGroup: a launcher that dies at once leaves the training that it
// has started the pod's time to save.
func TestLaunchStopsTheGroup(t *testing.T) {
	for name, test := range map[string]struct {
		standIn string
		status  int
	}{
		"a launcher that knows no signals": {`wait`, 143},
		"a launcher that ends quietly":     {`trap 'exit 0' TERM; wait`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			const training = `(trap 'sleep 0.3; touch saved; exit 0' TERM; touch ready; while :; do sleep 0.05; done) & `
			l := start(t, dir, training+test.standIn)
			l.awaits(filepath.Join(dir, "ready"))
			l.stop()
			assert.Equal(t, test.status, l.status())
			assert.FileExists(t, filepath.Join(dir, "saved"))
			assert.NoFileExists(t, l.finished)
		})
	}
}

// TestLaunchCannotRemember: the training is done all the same.
func TestLaunchCannotRemember(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "job"), nil, 0o600))
	l := start(t, dir, `exit 0`)
	l.says("in another pod the command would run again")
	l.stop()
	assert.Zero(t, l.status())
}

func TestLaunchMisused(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		env       []string
		says      string
	}{
		"without a command":          {nil, []string{"PERSIA_FINISHED_FILE=/tmp/none"}, "usage: launch.sh COMMAND"},
		"without a file to remember": {[]string{"true"}, nil, "PERSIA_FINISHED_FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.Command("bash", append([]string{"launch.sh"}, test.arguments...)...)
			command.Env = append([]string{"PATH=" + os.Getenv("PATH")}, test.env...)
			output, err := command.CombinedOutput()
			require.Error(t, err)
			assert.Contains(t, strings.ReplaceAll(string(output), "\n", " "), test.says)
		})
	}
}
