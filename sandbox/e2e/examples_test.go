package e2e

import (
	"io/fs"
	"os"
	"persia/sandbox/toolchain"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExamples takes the stacks of examples/ through their life: up, a second up and a refresh that change
// nothing, and destroy.
func TestExamples(t *testing.T) {
	nightly(t)
	compile(t, toolchain.OfJobSets, toolchain.OfQueues)
	files, err := fs.Glob(os.DirFS(examples), "Pulumi.*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		stack := strings.Split(file, ".")[1]
		if stack == "existing" || stack == "pedl" {
			continue // TestOneStackOnExistingCluster brings a cluster, and TestPEDL ends the support check
		}
		t.Run(stack, func(t *testing.T) {
			t.Parallel()
			project := editStack(t, "dev")
			require.NoError(t, os.CopyFS(project, os.DirFS(examples)))
			rewriteStack(t, project, stack, func(configuration object) {
				configuration["persia:cluster"].(object)["deletionProtection"] = false
			})
			s := newSandboxOf(t, project, t.TempDir(), stack)
			require.NoError(t, s.Apply(t.Context()))
			assert.Empty(t, upChanges(t, s), "second up")
			assert.Empty(t, refreshChanges(t, s), "refresh")
			require.NoError(t, s.Destroy(t.Context()))
			newCluster(t, s).assertEmpty()
		})
	}
}
