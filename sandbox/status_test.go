package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox/process"
)

func TestPrintEnded(t *testing.T) {
	for name, c := range map[string]struct {
		pool    string
		running []string
		want    []string
	}{
		"the agent runs":          {running: []string{"agent"}},
		"the agent has ended":     {want: []string{"agent"}},
		"both run":                {pool: "train", running: []string{"agent", "node"}},
		"the real node has ended": {pool: "train", running: []string{"agent"}, want: []string{"real node"}},
		"nothing runs":            {pool: "train", want: []string{"agent", "real node"}},
	} {
		t.Run(name, func(t *testing.T) {
			sleep := filepath.Join(t.TempDir(), "sleep")
			require.NoError(t, os.Symlink("/bin/sleep", sleep))
			s := &Sandbox{folder: folder{t.TempDir(), "dev"}, options: Options{Stack: "dev", Real: RealNode{Pool: c.pool}}}
			for i, program := range c.running {
				dir := s.path(program)
				require.NoError(t, process.Background(dir).Start(t.Context(), process.Program{Executable: sleep, Args: []string{"300", strconv.Itoa(i)}}))
				t.Cleanup(func() { assert.NoError(t, process.Background(dir).Stop(t.Context())) })
			}
			var out, want strings.Builder
			for _, program := range c.want {
				dir := s.path(strings.TrimPrefix(program, "real "))
				want.WriteString("\nthe " + program + " does not run: see " + process.Background(dir).Log() + ", and start it again with `make up STACK=dev`\n")
			}
			s.printEnded(&out)
			assert.Equal(t, want.String(), out.String())
		})
	}
}
