package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
	"persia/internal/testkit"
	"persia/workload/queue"
)

// modeline is the line that gives an editor the schema.
var modeline = regexp.MustCompile(`\A# yaml-language-server: \$schema=(\S+)\n`)

// TestStackFiles: an editor and the program accept every stack file, and its plan fits into a comment on GitHub.
func TestStackFiles(t *testing.T) {
	for _, path := range programtest.StackFiles(t) {
		t.Run(path, func(t *testing.T) {
			text := readText(t, path)
			named := modeline.FindStringSubmatch(text)
			require.NotNil(t, named, "its first line must say where the schema is, as in Pulumi.dev.yaml")
			assert.Equal(t, testkit.SchemaFile, filepath.Join(filepath.Dir(path), named[1]))
			assert.NoError(t, testkit.CheckSchema(t, []byte(text)))
			recorder := programtest.DeployFile(t, path)
			assert.NotEmpty(t, slices.Concat(recorder.Some(testkit.StatefulSet), recorder.Some(queue.JobSetToken)))

			stack := testkit.Must(loadStack(programtest.ReadStack(t, path), filepath.Dir(path)))(t)
			for line := range strings.Lines(stack.Plan().String()) {
				line = strings.TrimSuffix(line, "\n")
				assert.LessOrEqual(t, utf8.RuneCountInString(line), 100, line)
				assert.Equal(t, strings.TrimRight(line, " "), line)
			}
		})
	}
}

// TestExamplesAreListed: examples/README.md says what each example shows.
func TestExamplesAreListed(t *testing.T) {
	page := readText(t, "examples/README.md")
	for _, file := range testkit.Must(os.ReadDir(filepath.Join(root, "examples")))(t) {
		if file.Name() != "README.md" {
			assert.Contains(t, page, "]("+file.Name()+")")
		}
	}
}

// TestSameMetrics: users copy the folder of one example, so each has the module.
func TestSameMetrics(t *testing.T) {
	assert.Equal(t, readText(t, "examples/shop/metrics.py"), readText(t, "examples/training/metrics.py"))
}
