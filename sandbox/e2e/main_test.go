package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

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
	groups := append(toolchain.Chosen(), toolchain.OfStacks)
	tools, err = toolchain.Build(context.Background(), modules, filepath.Join(repository, ".sandbox", "bin"), os.Stdout, groups...)
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

func logFiles(t testing.TB, pattern string) {
	paths, _ := filepath.Glob(pattern)
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		t.Logf("%s:\n%s", path, text)
	}
}
