package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// TestCompileSandbox runs scripts/compile-sandbox.sh, which each target of make does first, with a stand-in for go.
func TestCompileSandbox(t *testing.T) {
	root := t.TempDir()
	script := testkit.Read(t, "../../../scripts/compile-sandbox.sh")
	write := func(name, text string) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	}
	write("scripts/compile-sandbox.sh", script)
	write(".bin/go", "#!/bin/sh\n[ \"$1\" = env ] || echo '#!/bin/sh' > .sandbox/bin/sandbox && chmod +x .sandbox/bin/sandbox 2> /dev/null; true\n")
	t.Setenv("PATH", filepath.Join(root, ".bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	binary, stamp := filepath.Join(root, ".sandbox/bin/sandbox"), filepath.Join(root, ".sandbox/bin/.sandbox.made")
	compiles := func() bool {
		_ = os.WriteFile(binary, []byte("old"), 0o755)
		output, err := exec.Command(filepath.Join(root, "scripts/compile-sandbox.sh"), ".sandbox/bin/sandbox").CombinedOutput()
		require.NoError(t, err, string(output))
		return testkit.Read(t, binary) != "old"
	}
	for _, step := range []struct {
		file string
		want bool
	}{
		{"stack/deploy.go", true}, {"Pulumi.dev.yaml", false}, {"examples/Pulumi.train.yaml", false}, {"docs/a.md", false},
		{"sandbox/a_test.go", false}, {"gcp/catalogue.yaml", true}, {"sandbox/go.sum", true},
	} {
		write(step.file, "") // a new file changes its folder
		require.Eventually(t, func() bool { return !compiles() }, testkit.Patience, time.Millisecond, "before %s", step.file)
		made := testkit.Must(os.Stat(stamp))(t)
		// The file system's clock may not have moved since.
		require.Eventually(t, func() bool {
			write(step.file, "a")
			changed, err := os.Stat(filepath.Join(root, step.file))
			return err == nil && changed.ModTime().After(made.ModTime())
		}, testkit.Patience, time.Millisecond)
		assert.Equal(t, step.want, compiles(), step.file)
	}
}

// TestMistake: a mistake in a stack file is said in its own words before anything is compiled or started.
func TestMistake(t *testing.T) {
	stacks, dir := t.TempDir(), t.TempDir()
	mistaken := strings.Replace(testkit.Read(t, "../../../Pulumi.dev.yaml"), "machineType:", "machinetype:", 1)
	require.NoError(t, os.WriteFile(filepath.Join(stacks, "Pulumi.dev.yaml"), []byte(mistaken), 0o600))
	up := command(nil)
	up.SetArgs([]string{"up", "--repository", "../../..", "--stacks", stacks, "--dir", dir})
	assert.EqualError(t, up.Execute(), "stack configuration: 1 problem\n"+
		"persia:nodePools[0].machinetype: unknown field; did you mean machineType?")
	assert.Empty(t, testkit.Must(os.ReadDir(dir))(t))
}
