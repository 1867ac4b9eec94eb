package tests

import (
	"maps"
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

// TestTrainingExampleHasOneNode: all of it is on the system pool, and so is its volume. A
// second node would have another directory, and would not get the disk.
func TestTrainingExampleHasOneNode(t *testing.T) {
	disk := map[string]any{"disk": "checkpoints", "create": map[string]any{}}
	for name, c := range map[string]struct {
		source map[string]any
		says   string
	}{
		"directory": {map[string]any{"hostPath": map[string]any{"path": "/mnt/disks/checkpoints"}},
			`persia:storage[0].hostPath: Invalid value: "/mnt/disks/checkpoints": is a different directory on each node, but the pods that mount the volume run on up to 2 nodes (pools system)`},
		"disk": {map[string]any{"persistentDisk": disk},
			`persia:storage[0].accessModes: Invalid value: ["ReadWriteOnce"]: allows one node to mount the volume, and the roles that mount the volume run on up to 2 nodes (pools system)`},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStackFile(t, "examples/Pulumi.train.yaml")
			volume := map[string]any{"name": "checkpoints", "size": "10Gi"}
			maps.Copy(volume, c.source)
			programtest.Edit(t, configuration, "persia:storage", func(volumes any) { volumes.([]any)[0] = volume })
			_, err := programtest.Deploy(t, configuration)
			require.NoError(t, err)

			programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
				cluster.(map[string]any)["systemPool"].(map[string]any)["nodes"] = 2
			})
			_, err = programtest.Deploy(t, configuration)
			assert.ErrorContains(t, err, c.says)
		})
	}
}
