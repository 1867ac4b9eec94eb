package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"persia/internal/testkit"
)

// TestTerminal: a program that imports Pulumi's SDK does not ask the terminal for its colors, because one that
// does not answer holds each command up for 5 seconds.
func TestTerminal(t *testing.T) {
	terminal := testkit.Must(os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	defer func() { _ = terminal.Close() }()
	require.NoError(t, unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0))
	number := testkit.Must(unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN))(t)
	end := testkit.Must(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	command := exec.Command(os.Args[0], "-test.list", "^TestTerminal$")
	command.Stdin, command.Stdout, command.Stderr = end, end, end
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	command.Env = append(os.Environ(), "TERM=xterm-256color", "CI=")
	require.NoError(t, command.Run())
	require.NoError(t, end.Close())
	said, _ := io.ReadAll(terminal) // Linux ends it with an error
	assert.Regexp(t, `^TestTerminal\s`, string(said))
}
