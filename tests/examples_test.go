package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
	"persia/internal/pulumitest"
	"persia/internal/schematest"
)

// modeline is what tells an editor where the schema is.
var modeline = regexp.MustCompile(`\A# yaml-language-server: \$schema=(\S+)\n`)

// TestStackFiles holds that every stack file is one that an editor and the program
// take, and that it names its schema.
func TestStackFiles(t *testing.T) {
	schema := schematest.Read(t, root)
	for _, path := range programtest.StackFiles(t) {
		t.Run(path, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, path))
			require.NoError(t, err)
			named := modeline.FindSubmatch(text)
			require.NotNil(t, named, "its first line must say where the schema is, as in Pulumi.dev.yaml")
			assert.Equal(t, schematest.File, filepath.Join(filepath.Dir(path), string(named[1])))
			assert.NoError(t, schema.Check(t, text))

			recorder := programtest.DeployFile(t, path)
			assert.NotEmpty(t, recorder.All(t, pulumitest.StatefulSet))
		})
	}
}

// TestShortStacks holds how many lines common stacks take, without comments.
func TestShortStacks(t *testing.T) {
	for path, most := range map[string]int{
		"examples/Pulumi.existing.yaml": 22,
		"examples/Pulumi.a100.yaml":     30,
		"Pulumi.prod.yaml":              75,
	} {
		lines := 0
		for line := range strings.Lines(readText(t, path)) {
			if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "#") {
				lines++
			}
		}
		assert.LessOrEqual(t, lines, most, "%s has %d lines", path, lines)
	}
}

// TestExamplesAreListed: examples/README.md says what each example shows.
func TestExamplesAreListed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "examples", "README.md"))
	require.NoError(t, err)
	files, err := os.ReadDir(filepath.Join(root, "examples"))
	require.NoError(t, err)
	for _, file := range files {
		if file.Name() != "README.md" {
			assert.Contains(t, string(page), "]("+file.Name()+")")
		}
	}
}
