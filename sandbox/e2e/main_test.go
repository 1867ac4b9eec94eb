package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"persia/sandbox"
	"persia/sandbox/toolchain"
)

// repository is the folder of Pulumi.yaml and the stack files.
const repository = "../.."

// The toolchain and the sandbox command, built once for all tests.
var (
	tools      toolchain.Tools
	executable string
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	var err error
	tools, err = toolchain.Build(context.Background(), modules, filepath.Join(repository, ".sandbox", "bin"), os.Stdout, toolchain.OfStacks)
	if err != nil {
		return 0, err
	}
	// The one that `make e2e` has compiled.
	executable = filepath.Join(binDir(), "sandbox")
	build := exec.Command(filepath.Join(repository, "scripts", "compile-sandbox.sh"), ".sandbox/bin/sandbox")
	if output, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("compile the sandbox command: %w\n%s", err, output)
	}
	return m.Run(), nil
}

// modules is the folder of the toolchain's modules.
var modules = filepath.Join(repository, "sandbox", "toolchain")

// compile compiles more programs, as the command does for the stacks that need them.
func compile(t testing.TB, groups ...toolchain.Group) toolchain.Tools {
	t.Helper()
	compiled, err := toolchain.Build(t.Context(), modules, binDir(), t.Output(), groups...)
	require.NoError(t, err)
	return compiled
}

// newSandbox returns the sandbox of a stack of the repository, which writes to dir. It is
// taken down when the test ends.
func newSandbox(t *testing.T, dir, stack string) *sandbox.Sandbox {
	t.Helper()
	return newSandboxOf(t, repository, dir, stack)
}

// newSandboxOf is newSandbox for a stack whose file is in project.
func newSandboxOf(t testing.TB, project, dir, stack string) *sandbox.Sandbox {
	t.Helper()
	s := openSandbox(t, project, dir, stack)
	takeDown(t, s, dir)
	return s
}

// takeDown takes a sandbox down when the test ends.
func takeDown(t testing.TB, s *sandbox.Sandbox, dir string) {
	t.Cleanup(func() {
		if t.Failed() {
			logFiles(t, filepath.Join(s.AgentLogs(), "*.log"))
		}
		if err := s.Down(context.Background()); err != nil {
			t.Errorf("take the sandbox down: %v", err)
			// Its processes would slow down all later tests.
			killAll(t, dir)
		}
	})
}

// openSandbox returns the sandbox of a stack whose file is in project.
func openSandbox(t testing.TB, project, dir, stack string) *sandbox.Sandbox {
	t.Helper()
	return openSandboxTo(t, t.Output(), project, dir, stack)
}

// openSandboxTo is openSandbox for commands that print to out.
func openSandboxTo(t testing.TB, out io.Writer, project, dir, stack string) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.New(sandbox.Options{
		Project:    project,
		Stack:      stack,
		Dir:        dir,
		Tools:      tools,
		Executable: executable,
		Out:        out,
	})
	require.NoError(t, err)
	return s
}

func logFiles(t testing.TB, pattern string) {
	paths, _ := filepath.Glob(pattern)
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		t.Logf("%s:\n%s", path, text)
	}
}
