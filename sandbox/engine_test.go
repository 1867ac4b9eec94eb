package sandbox

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unseen is a Pulumi CLI whose output is read.
type unseen struct{ auto.PulumiCommand }

func (unseen) Run(_ context.Context, _ string, _ io.Reader, _, _ []io.Writer, _ []string, args ...string) (string, string, int, error) {
	return "read: " + strings.Join(args, " "), "", 0, nil
}

// TestCLI: the command skips what an update needs no answer to.
func TestCLI(t *testing.T) {
	c := &cli{PulumiCommand: unseen{}, made: true}
	for command, want := range map[string]string{"export": "read: stack export", "select": "", "output": "{}", "history": "[]"} {
		said, _, _, err := c.Run(t.Context(), "", nil, nil, nil, nil, "stack", command)
		require.NoError(t, err)
		assert.Equal(t, want, said)
	}
}
