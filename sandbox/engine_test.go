package sandbox

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// unseen is a Pulumi CLI whose output is read.
type unseen struct{ auto.PulumiCommand }

func (unseen) Run(_ context.Context, _ string, _ io.Reader, _, _ []io.Writer, _ []string, args ...string) (string, string, int, error) {
	return "read: " + strings.Join(args, " "), "", 0, nil
}

// TestUpOnATerminal: the CLI shows an up itself, and reports how it has ended. The command skips outputs and history.
func TestUpOnATerminal(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "pulumi")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"$PWD $OF $TERM: $*\"\nexit 3\n"), 0o700))
	terminal := testkit.Must(os.Create(filepath.Join(dir, "terminal")))(t)
	defer func() { _ = terminal.Close() }()
	c := &cli{PulumiCommand: unseen{}, path: script, terminal: terminal, made: true}
	_, _, code, err := c.Run(t.Context(), dir, nil, nil, nil, []string{"OF=dev"}, "up", "--yes")
	assert.Error(t, err)
	assert.Equal(t, 3, code)
	shown := testkit.Read(t, terminal.Name())
	assert.Equal(t, dir+" dev screen-256color: up --yes\n", shown)
	for command, want := range map[string]string{"export": "read: stack export", "select": "", "output": "{}", "history": "[]"} {
		said, _, _, err := c.Run(t.Context(), dir, nil, nil, nil, nil, "stack", command)
		require.NoError(t, err)
		assert.Equal(t, want, said)
	}
}
