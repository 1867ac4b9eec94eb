package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func binDir() string { return filepath.Dir(tools.Pulumi) }

// sandboxCommand runs the sandbox command on the stack dev.
func sandboxCommand(t *testing.T, dir string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), executable, append(args, "--dir", dir, "--repository", repository, "--toolchain", binDir())...)
	var out, errs strings.Builder
	command.Stdout, command.Stderr = &out, &errs
	err = command.Run()
	return out.String(), errs.String(), err
}

func testCommandsBeforeUp(t *testing.T, dir string) {
	for _, command := range []string{"status", "kubeconfig"} {
		_, stderr, err := sandboxCommand(t, dir, command)
		assert.Error(t, err)
		assert.Contains(t, stderr, "make up STACK=dev")
	}
	stdout, _, err := sandboxCommand(t, dir, "preview")
	require.NoError(t, err)
	assert.Contains(t, stdout, "kubernetes:apps/v1:StatefulSet")
	_, _, err = sandboxCommand(t, dir, "down")
	assert.NoError(t, err, "there is nothing to take down")

	_, stderr, err := sandboxCommand(t, dir, "up", "--stack", "nowhere")
	assert.Error(t, err)
	assert.Contains(t, stderr, "Pulumi.nowhere.yaml")
}

// upByCommand brings the stack dev up.
func upByCommand(t *testing.T, dir string) {
	t.Helper()
	stdout, _, err := sandboxCommand(t, dir, "up")
	require.NoError(t, err, stdout)
	assert.Contains(t, stdout, "StatefulSet adult-income-nn-worker")
	assert.Contains(t, stdout, "kubectl get pods -A")
	stdout, _, err = sandboxCommand(t, dir, "kubeconfig")
	require.NoError(t, err)
	assert.FileExists(t, strings.TrimSuffix(stdout, "\n"), "the path and nothing else")
}

// testDownByCommand takes down what is left of the sandbox.
func testDownByCommand(t *testing.T, dir string) {
	_, _, err := sandboxCommand(t, dir, "down")
	require.NoError(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries)
	assertNoProcess(t, dir)
}
