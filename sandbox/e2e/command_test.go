package e2e

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func binDir() string { return string(tools) }

// command runs the sandbox command on the stack, as a user does.
func (s *stack) command(args ...string) (stdout, stderr string, err error) {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), executable, append(args, "--dir", s.dir, "--repository", repository, "--toolchain", binDir())...)
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
