package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
	"persia/sandbox/toolchain"
)

// examples is the project of the example stacks: the manifests of some lie there.
var examples = filepath.Join(repository, "examples")

// TestExamples takes the stacks of examples/ through their life: up, a second up and a refresh that change
// nothing, and destroy.
func TestExamples(t *testing.T) {
	nightly(t)
	compile(t, toolchain.OfJobSets, toolchain.OfQueues)
	files := testkit.Must(fs.Glob(os.DirFS(examples), "Pulumi.*.yaml"))(t)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.Split(file, ".")[1]
		if name == "existing" || name == "pedl" {
			continue // TestOneStackOnExistingCluster brings a cluster, and TestPEDL ends the support check
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stackIn(t, t.TempDir(), name, `cluster: {deletionProtection: false}`)
			s.up()
			s.assertUnchanged()
			s.destroy()
		})
	}
}
