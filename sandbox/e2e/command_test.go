package e2e

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func binDir() string { return string(tools) }

// sandboxCommand runs the sandbox command on the stack dev.
func sandboxCommand(t *testing.T, dir string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), executable, append(args, "--dir", dir, "--repository", repository, "--toolchain", binDir())...)
	var out, errs strings.Builder
	command.Stdout, command.Stderr = &out, &errs
	err = command.Run()
	return out.String(), errs.String(), err
}

// command is a command of the sandbox in a process group of its own.
type command struct {
	*exec.Cmd
	*operation
	// lines is the number of lines that the command has printed.
	lines int
}

// startCommand begins a command of the sandbox, with more environment variables than this process has. It
// calls see with each line that the command prints, and its number.
func startCommand(t testing.TB, see func(number int, line string), variables []string, args ...string) *command {
	t.Helper()
	c := &command{Cmd: exec.Command(executable, append(args, "--toolchain", binDir(), "--repository", repository)...)}
	c.Env = append(os.Environ(), variables...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, write, err := os.Pipe()
	require.NoError(t, err)
	c.Stdout, c.Stderr = write, write
	require.NoError(t, c.Start())
	require.NoError(t, write.Close())
	c.operation = begin(func() error {
		lines := bufio.NewScanner(io.TeeReader(read, t.Output()))
		for lines.Scan() {
			c.lines++
			see(c.lines, lines.Text())
		}
		// The engine may outlive the command: the pipe is open until it has ended.
		return c.Wait()
	})
	return c
}

// signal sends a signal to the command and its children, as a terminal does.
func (c *command) signal(signal syscall.Signal) { _ = syscall.Kill(-c.Process.Pid, signal) }

func testCommandsBeforeUp(t *testing.T, dir string) {
	for _, command := range []string{"status", "kubeconfig"} {
		_, stderr, err := sandboxCommand(t, dir, command)
		assert.Error(t, err)
		assert.Contains(t, stderr, "make up STACK=dev")
	}
	stdout, _, err := sandboxCommand(t, dir, "preview")
	require.NoError(t, err)
	assert.Contains(t, stdout, "kubernetes:apps/v1:StatefulSet")
	_, _, err = sandboxCommand(t, dir, "down")
	assert.NoError(t, err, "there is nothing to take down")

	_, stderr, err := sandboxCommand(t, dir, "up", "--stack", "nowhere")
	assert.Error(t, err)
	assert.Contains(t, stderr, "Pulumi.nowhere.yaml")
}

// upByCommand brings the stack dev up.
func upByCommand(t *testing.T, dir string) {
	t.Helper()
	stdout, _, err := sandboxCommand(t, dir, "up")
	require.NoError(t, err, stdout)
	assert.Contains(t, stdout, "StatefulSet adult-income-nn-worker")
	assert.Contains(t, stdout, "kubectl get pods -A")
	stdout, _, err = sandboxCommand(t, dir, "kubeconfig")
	require.NoError(t, err)
	assert.FileExists(t, strings.TrimSuffix(stdout, "\n"), "the path and nothing else")
}

// testDownByCommand takes down what is left of the sandbox.
func testDownByCommand(t *testing.T, dir string) {
	_, _, err := sandboxCommand(t, dir, "down")
	require.NoError(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries)
	assertNoProcess(t, dir)
}
