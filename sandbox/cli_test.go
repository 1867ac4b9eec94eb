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

// called is a CLI that repeats its arguments.
type called struct{ auto.PulumiCommand }

func (called) Run(_ context.Context, _ string, _ io.Reader, _, _ []io.Writer, _ []string, args ...string) (string, string, int, error) {
	return strings.Join(args, " "), "", 0, nil
}

func TestCLI(t *testing.T) {
	cases := map[string]struct {
		command          string
		exists, noResult bool
		want             string
	}{
		"a stack that exists":            {"stack select --stack dev", true, false, ""},
		"a stack that does not":          {"stack select --stack dev", false, false, "stack select --stack dev"},
		"an update":                      {"up --yes", true, true, "up --yes"},
		"outputs that are wanted":        {"stack output --json", true, false, "stack output --json"},
		"outputs that nobody wants":      {"stack output --json", true, true, "{}"},
		"a history that nobody wants":    {"stack history --json", true, true, "[]"},
		"an export, whatever is wanted":  {"stack export", true, true, "stack export"},
		"a command of a single argument": {"version", true, true, "version"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			stack := State{t.TempDir(), "dev"}
			if test.exists {
				write(t, stack.File(), "{}")
			}
			c := &cli{PulumiCommand: called{}, stack: stack, noOutputs: test.noResult, noHistory: test.noResult}
			got, _, _, err := c.Run(t.Context(), "", nil, nil, nil, nil, strings.Fields(test.command)...)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}
