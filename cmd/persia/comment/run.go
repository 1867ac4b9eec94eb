// Package comment previews a stack, and summarizes the preview for its reviewer as the Markdown of one
// comment. See docs/guides/pull-requests.md.
package comment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Run runs `pulumi preview`, or another command that prints the engine's events, one JSON object a line. It
// writes the comment to out and what the command says to log, and returns the command's exit code. It
// returns an error if the command did not run.
func Run(stack, title string, command []string, out, log io.Writer) (int, error) {
	if len(command) == 0 {
		command = []string{"pulumi", "preview", "--stack", stack, "--json", "--non-interactive", "--color", "never"}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true")
	var p preview
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &p, io.MultiWriter(&said, log)
	code, err := 0, cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		// A command that a signal has ended has no exit code.
		code = max(exit.ExitCode(), 1)
	} else if err != nil {
		return 1, err
	}
	p.end()
	p.said += said.String()
	if _, err := fmt.Fprint(log, p.messages, p.diff()); err != nil {
		return 1, err
	}
	if _, err := io.WriteString(out, comment(title, stack, &p, code)); err != nil {
		return 1, err
	}
	return code, nil
}
