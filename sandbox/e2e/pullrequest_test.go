package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// commenter returns a function that previews edits of the stack dev as a pull request
// comment, and returns the comment with the exit status.
func commenter(t *testing.T, dir string) func(t *testing.T, edits ...string) (string, int) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "persia")
	output, err := exec.Command("go", "build", "-o", program, "persia/cmd/persia").CombinedOutput()
	require.NoError(t, err, string(output))
	return func(t *testing.T, edits ...string) (string, int) {
		project := editStack(t, "dev", edits...)
		// The sandbox command looks for its toolchain next to the stack files.
		sandboxModule, err := filepath.Abs("..")
		require.NoError(t, err)
		require.NoError(t, os.Symlink(sandboxModule, filepath.Join(project, "sandbox")))
		text, err := exec.Command(program, "comment", "--stack", "dev", "--",
			executable, "preview", "--json", "--dir", dir, "--repository", project, "--toolchain", binDir()).Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return string(text), exit.ExitCode()
		}
		require.NoError(t, err)
		return string(text), 0
	}
}

// testCommentsOnChanges checks the comments on an edit, which testdata/preview-comment.md shows,
// and on a stack file that the program refuses.
func testCommentsOnChanges(t *testing.T, comment func(*testing.T, ...string) (string, int)) {
	t.Run("an edit", func(t *testing.T) {
		edits := []string{
			"dataloader:\n        replicas: 1", "dataloader:\n        replicas: 2",
			"size: 1\n", "size: 1\n    maxPayload: 33554432\n",
			"name: checkpoints-vol", "name: checkpoints",
			"volume: checkpoints-vol", "volume: checkpoints",
			"claim: checkpoints-pvc", "claim: checkpoints",
		}
		text, code := comment(t, edits...)
		assert.Zero(t, code)
		again, _ := comment(t, edits...)
		assert.Equal(t, fingerprint(t, text), fingerprint(t, again), "the engine's order must not matter")

		want := testkit.ReadGolden(t, "preview-comment.md", text)
		assert.Equal(t, normalized(want), normalized(text), "go test ./e2e -run TestDev/comments -update writes it again")
	})
}

// fingerprint returns the fingerprint by which a deployment recognizes the approved changes.
func fingerprint(t *testing.T, comment string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^<!-- persia-changes: ([0-9a-f]{16}) -->$`).FindStringSubmatch(comment)
	require.NotNil(t, found, comment)
	return found[1]
}

// hashes are the parts of names and annotations that change with any script of the program.
var hashes = regexp.MustCompile(`(completion-|"|persia-changes: )([0-9a-f]{16}|[0-9a-f]{8})\b`)

// normalized returns the lines of a comment without the engine's order and without hashes.
func normalized(comment string) []string {
	return slices.Sorted(strings.Lines(hashes.ReplaceAllString(comment, "${1}HASH")))
}
