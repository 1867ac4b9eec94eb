package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"persia/sandbox"
	"persia/sandbox/rehearsal"
)

func rehearseCommand(f *flags) *cobra.Command {
	of, markdown := rehearsal.Options{Progress: os.Stderr}, false
	const short = "Bring a stack up as it was, update it to the working tree, and compare that with the preview"
	command := run("rehearse", short, func(ctx context.Context) error {
		// The sandbox of the stack itself, if it is up, goes on.
		f.Dir, f.Out = filepath.Join(f.Dir, "rehearsal", f.Stack), os.Stderr
		if err := errors.Join(os.MkdirAll(f.Dir, 0o700), f.buildToolchain(ctx)); err != nil {
			return err
		}
		log, err := os.Create(filepath.Join(f.Dir, "log"))
		if err != nil {
			return err
		}
		of.Build, of.Options, of.Out = func(s *sandbox.Sandbox) error { return f.build(ctx, s.Groups()...) }, f.Options, log
		summary, err := rehearsal.Run(ctx, of)
		if err != nil {
			return err
		}
		text := summary.String()
		if markdown {
			text = summary.Markdown()
		}
		fmt.Print(text)
		if !summary.OK() {
			return fmt.Errorf("refused, or not as announced: all that the engine says is in %s", log.Name())
		}
		return log.Close()
	})
	command.Flags().StringVar(&of.Base, "base", "", "name of what the stack is brought up from")
	command.Flags().StringVar(&of.BaseStacks, "base-stacks", "", "folder of the stack file as it was; without, the stack is new")
	command.Flags().StringVar(&of.BaseProject, "base-project", "", "repository as it was")
	command.Flags().StringVar(&of.BaseSandbox, "base-sandbox", "", "its sandbox command, if the program has changed")
	command.Flags().BoolVar(&of.Destroy, "destroy", false, "also take the stack down, bring it up again, and look for its storage")
	command.Flags().BoolVar(&markdown, "markdown", false, "print the summary for a comment on a pull request")
	return command
}
