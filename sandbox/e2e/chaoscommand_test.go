package e2e

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/stretchr/testify/require"
)

// command is a command of the sandbox in a process group of its own.
type command struct {
	*exec.Cmd
	// line receives the number of each line that is printed.
	line  chan int
	ended chan struct{}
	err   error
	lines int
}

// start begins the command that brings the stack to a state, with more environment
// variables than this process has.
func (x *chaosStack) start(to string, variables ...string) *command {
	x.t.Helper()
	name := "destroy"
	if to != "destroy" {
		x.write(to)
		name = "up"
	}
	c := &command{
		Cmd: exec.Command(executable, name, "--stack", "madeup", "--stacks", x.stack.project, "--dir", x.dir,
			"--repository", repository, "--toolchain", binDir()),
		line: make(chan int, 1<<16), ended: make(chan struct{}),
	}
	c.Env = append(os.Environ(), variables...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, write, err := os.Pipe()
	require.NoError(x.t, err)
	c.Stdout, c.Stderr = write, write
	require.NoError(x.t, c.Start())
	require.NoError(x.t, write.Close())
	go func() {
		defer close(c.ended)
		lines := bufio.NewScanner(io.TeeReader(read, x.t.Output()))
		for lines.Scan() {
			c.lines++
			c.line <- c.lines
		}
		// The engine may outlive the command: the pipe is open until it has ended.
		c.err = c.Wait()
	}()
	return c
}

// printed is closed when the command has printed a number of lines.
func (c *command) printed(count int) <-chan struct{} {
	reached := make(chan struct{})
	go func() {
		defer close(reached)
		for count > 0 {
			select {
			case n := <-c.line:
				if n >= count {
					return
				}
			case <-c.ended:
				return
			}
		}
	}()
	return reached
}

func (c *command) wait() error {
	<-c.ended
	return c.err
}

func (c *command) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// end kills what is left of the command.
func (c *command) end() {
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	<-c.ended
}
