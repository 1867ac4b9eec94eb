package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
	"persia/sandbox/process"
)

// write writes a file in a new folder.
func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

func TestState(t *testing.T) {
	for name, test := range map[string]struct {
		checkpoint         string
		resources, pending int
	}{
		"never up":               {"", 0, 0},
		"a stack just created":   {`{"version": 3, "checkpoint": {"stack": "dev"}}`, 0, 0},
		"resources":              {`{"version": 3, "checkpoint": {"latest": {"resources": [{"urn": "a"}]}}}`, 1, 0},
		"a resource in the make": {`{"version": 3, "checkpoint": {"latest": {"pending_operations": [{"type": "creating"}]}}}`, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			state := State{t.TempDir(), "dev"}
			if test.checkpoint != "" {
				write(t, state.File(), test.checkpoint)
			}
			resources, pending, err := state.Resources()
			require.NoError(t, err)
			assert.Equal(t, []int{test.resources, test.pending}, []int{resources, pending})
		})
	}
}

func TestDeletesFailed(t *testing.T) {
	for name, test := range map[string]struct {
		last string
		want bool
	}{
		"never up":                  {"", false},
		"an up":                     {`{"kind": "update", "result": "succeeded", "resourceChanges": {"delete": 1}}`, false},
		"an up that failed":         {`{"kind": "update", "result": "failed", "resourceChanges": {"create": 3}}`, false},
		"an up that failed halfway": {`{"kind": "update", "result": "failed", "resourceChanges": {"create": 3, "delete": 1}}`, true},
		"a destroy that failed":     {`{"kind": "destroy", "result": "failed"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			state := State{t.TempDir(), "dev"}
			if test.last != "" {
				history := filepath.Join(state.dir, ".pulumi", "history", "persia", "dev")
				write(t, filepath.Join(history, "dev-1.history.json"), `{"kind": "destroy", "result": "failed"}`)
				write(t, filepath.Join(history, "dev-2.history.json"), test.last)
			}
			assert.Equal(t, test.want, testkit.Must(state.deletesFailed())(t))
		})
	}
}

func TestStateURL(t *testing.T) {
	assert.Equal(t, "file:///home/me/a%20b/50%25%231/state?metadata=skip", State{"/home/me/a b/50%#1/state", "dev"}.url())
}

// TestEndCLI: of the processes that a lock may name, only the CLI is ended. A crash can leave a file that is empty.
func TestEndCLI(t *testing.T) {
	state := State{t.TempDir(), "dev"}
	cli := exec.Command("sleep", "300")
	require.NoError(t, cli.Start())
	t.Cleanup(func() { _ = cli.Process.Kill() })
	ended := make(chan error, 1)
	go func() { ended <- cli.Wait() }()
	write(t, filepath.Join(state.dir, ".pulumi", "locks", "organization", "persia", "dev", "a.json"), `{"pid": `+strconv.Itoa(cli.Process.Pid)+`}`)
	write(t, filepath.Join(state.dir, ".pulumi", "locks", "organization", "persia", "dev", "0.json"), "")
	require.Len(t, state.Locks(), 2)
	require.NoError(t, state.endCLI(t.Context(), "/no/pulumi"))
	assert.Empty(t, ended, "it is no CLI")
	require.NoError(t, state.unlock(t.Context(), "sleep"))
	assert.Error(t, <-ended)
	assert.Empty(t, state.Locks())
}

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
