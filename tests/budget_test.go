package tests

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// TestBudget keeps the weight of the repository. To add something, take something away.
func TestBudget(t *testing.T) {
	listed := testkit.Must(exec.Command("git", "-C", "..", "ls-files", "-z").Output())(t)
	found := map[string]int{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		text, err := os.ReadFile("../" + name)
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		require.NoError(t, err)
		lines := bytes.Count(text, []byte("\n"))
		isTest := strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".py") && strings.Contains(name, "test")
		if !isTest && regexp.MustCompile(`\.(go|py|sh)$`).MatchString(name) { // a tab is one column
			found["lines wider than 140 columns"] += len(regexp.MustCompile(`(?m)^.{141,}$`).FindAllIndex(text, -1))
		}
		if strings.HasPrefix(name, "sandbox/") && strings.HasSuffix(name, ".go") {
			assert.NotContains(t, string(text), "\n\t\"persia/cmd/", "%s imports a command", name)
		}
		switch {
		case isTest:
			found["lines of tests"] += lines
		case strings.HasSuffix(name, ".py") && strings.HasPrefix(name, "workload/"):
			found["lines of Python in pods"] += lines
		case strings.HasSuffix(name, ".go") && strings.HasPrefix(name, "sandbox/"):
			found["lines of the sandbox"] += lines
		case strings.HasSuffix(name, ".go"):
			found["lines of the program"] += lines
		case strings.HasSuffix(name, ".md"):
			found["words of Markdown"] += len(bytes.Fields(text))
		}
	}
	for what, limit := range map[string]int{
		"lines of the program":         21780,
		"lines of the sandbox":         13800,
		"lines of tests":               27300,
		"lines of Python in pods":      3700,
		"words of Markdown":            28245,
		"lines wider than 140 columns": 1,
	} {
		t.Logf("%s: %d of %d", what, found[what], limit)
		assert.LessOrEqual(t, found[what], limit, what)
	}
}
