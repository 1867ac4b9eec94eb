// Package comment previews a stack, and summarizes the preview for its reviewer as the Markdown of one
// comment. See docs/guides/pull-requests.md.
package comment

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
)

// Run runs `pulumi preview`, or another command, writes the comment to out and the command's output to
// log, and returns the command's exit code. It returns an error if the command did not run.
func Run(stack, title string, command []string, out, log io.Writer) (int, error) {
	if len(command) == 0 {
		command = []string{"pulumi", "preview", "--stack", stack, "--diff", "--non-interactive", "--color", "never"}
	}
	text, code, err := output(command, log)
	if err != nil {
		return code, err
	}
	if _, err = io.WriteString(out, comment(title, stack, parse(text), code)); err != nil {
		return 1, err
	}
	return code, nil
}

// output runs a command, and returns its output and exit code.
func output(command []string, log io.Writer) (string, int, error) {
	var text bytes.Buffer
	// One writer for both, so that they are written one after the other.
	both := io.MultiWriter(&text, log)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = both, both
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		// A command that a signal has ended has no exit code.
		return text.String(), max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return "", 1, err
	}
	return text.String(), 0, nil
}
