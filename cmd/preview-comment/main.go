// Preview-comment previews a stack and prints a summary for its reviewer as the
// Markdown of one comment.
//
//	preview-comment --stack prod > comment.md
//
// runs `pulumi preview`. A command after -- runs instead:
//
//	preview-comment --stack dev -- make -s preview STACK=dev
//
// Preview-comment copies the preview's output to standard error as it comes, and exits with
// its exit code. If the preview fails, the comment says why. See docs/guides/pull-requests.md.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	code, err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintf(os.Stderr, "preview-comment: %v\n", err)
	}
	os.Exit(code)
}

// usage is the exit code of a command line that is not understood.
const usage = 2

// run writes the comment to out and the preview's output to log, and returns the
// preview's exit code.
func run(args []string, out, log io.Writer) (int, error) {
	flags := flag.NewFlagSet("preview-comment", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.Usage = func() {
		_, _ = fmt.Fprint(log, "Usage: preview-comment --stack STACK [--title TITLE] [-- COMMAND…]\n\n") // nowhere else to say it
		flags.PrintDefaults()
	}
	stack := flags.String("stack", "", "the stack, as in Pulumi.STACK.yaml")
	title := flags.String("title", "Preview", "what the comment is about: Preview, Drift")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0, nil
	case err != nil:
		return usage, err
	}
	if *stack == "" {
		return usage, errors.New("--stack is missing: write the name of the stack, like --stack dev")
	}
	command := flags.Args()
	if len(command) == 0 {
		command = []string{"pulumi", "preview", "--stack", *stack, "--diff", "--non-interactive", "--color", "never"}
	}
	text, code, err := output(command, log)
	if err != nil {
		return code, err
	}
	_, err = io.WriteString(out, comment(*title, *stack, parse(text), code))
	if err != nil {
		return 1, err
	}
	return code, nil
}

// output runs a command, and returns its output and exit code. It returns an error if the command
// did not run.
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
