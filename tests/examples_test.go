package tests

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config"
	"persia/internal/programtest"
	"persia/internal/testkit"
	"persia/workload/jobset"
)

// modeline is the line that gives an editor the schema.
var modeline = regexp.MustCompile(`\A# yaml-language-server: \$schema=(\S+)\n`)

// TestStackFiles holds that every stack file is one that an editor and the program
// take, and that it names its schema.
func TestStackFiles(t *testing.T) {
	schema := testkit.ReadSchema(t, root)
	for _, path := range programtest.StackFiles(t) {
		t.Run(path, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, path))
			require.NoError(t, err)
			named := modeline.FindSubmatch(text)
			require.NotNil(t, named, "its first line must say where the schema is, as in Pulumi.dev.yaml")
			assert.Equal(t, testkit.SchemaFile, filepath.Join(filepath.Dir(path), string(named[1])))
			assert.NoError(t, schema.Check(t, text))

			recorder := programtest.DeployFile(t, path)
			assert.NotEmpty(t, slices.Concat(recorder.Some(testkit.StatefulSet), recorder.Some(jobset.Token)))
		})
	}
}

// TestShortStacks holds how many lines common stacks take, without comments.
func TestShortStacks(t *testing.T) {
	for path, most := range map[string]int{
		"examples/Pulumi.existing.yaml": 22,
		"examples/Pulumi.a100.yaml":     31,
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

// TestProdHoldsItsCheckpoints checks the size of the bucket of prod, and what the comment there says
// about a checkpoint, against the memory of its embedding parameter servers.
func TestProdHoldsItsCheckpoints(t *testing.T) {
	const (
		path = "Pulumi.prod.yaml"
		tebi = 1 << 40
		// The coordinator keeps two complete checkpoints, and the job writes another.
		checkpoints = 3
	)
	configuration := programtest.ReadStackFile(t, path)
	stack, err := config.Load(func(key string) (string, bool) {
		value, found := configuration[key]
		return value, found
	}, os.DirFS(root))
	require.NoError(t, err)
	servers := stack.Jobs[0].EmbeddingParameterServer
	bytes := float64(servers.Replicas) * servers.Resources.Limits.Memory().AsApproximateFloat64()
	says := regexp.MustCompile(`takes up to (\d+) TiB, because the\s+# (\d+) embedding parameter servers`).FindStringSubmatch(readText(t, path))
	require.NotNil(t, says, "the comment says what a checkpoint takes")
	assert.Equal(t, fmt.Sprintf("%.0f", bytes/tebi), says[1], "TiB")
	assert.Equal(t, fmt.Sprint(servers.Replicas), says[2], "servers")
	size := resource.MustParse(stack.Storage[0].Size)
	assert.GreaterOrEqual(t, size.AsApproximateFloat64(), checkpoints*bytes, "the bucket")
}

// TestAnonymousCachesSayWhatCredentialsChange: an anonymous cache may meet the limit of Docker
// Hub, so the stack file that has one says what credentials change.
func TestAnonymousCachesSayWhatCredentialsChange(t *testing.T) {
	found := 0
	for _, path := range programtest.StackFiles(t) {
		text := readText(t, path)
		at := strings.Index(text, "registry: docker.io}")
		if at < 0 || strings.Contains(text[at:], "credentials:") {
			continue
		}
		found++
		comment := text[:at]
		comment = comment[strings.LastIndex(comment, "\n\n"):]
		for _, word := range []string{"429", "credentials", "docs/guides/images.md"} {
			assert.Contains(t, comment, word, path)
		}
	}
	assert.NotZero(t, found, "no stack file has an anonymous cache")
	row := regexp.MustCompile(`(?m)^\| .*429 Too Many Requests.*docker\.pkg\.dev.*credentials.* \|$`)
	assert.Regexp(t, row, readText(t, "docs/reference/troubleshooting.md"))
}
