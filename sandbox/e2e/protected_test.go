package e2e

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox"
)

// testProtected: while a stack's cluster is protected from deletion, no change replaces a
// node pool or the cluster; and where one does, a preview says so.
func testProtected(t *testing.T, s *sandbox.Sandbox, dir string) {
	const (
		protected   = "deletionProtection: true"
		unprotected = "deletionProtection: false"
		machine     = "machineType: g2-standard-32"
		other       = "\n    network: {controlPlane: 172.16.1.0/28}"
		permission  = "\n    replace: persia-dev"
	)
	up := func(project string) {
		t.Helper()
		err := openSandbox(t, project, dir, "dev").Apply(t.Context())
		require.NoError(t, err)
	}
	preview := func(edits ...string) (map[apitype.OpType]int, error) {
		t.Helper()
		result, err := openSandbox(t, editStack(t, "dev", edits...), dir, "dev").Preview(t.Context())
		return result.ChangeSummary, err
	}
	up(editStack(t, "dev", unprotected, protected))

	t.Run("a pool", func(t *testing.T) {
		_, err := preview(unprotected, protected, machine, machine+"\n      maxPodsPerNode: 64")
		require.Error(t, err)
		changes, err := preview(machine, machine+"\n      maxPodsPerNode: 64")
		require.NoError(t, err)
		assert.Equal(t, 1, changes[apitype.OpReplace], "%v", changes)
	})
	t.Run("the cluster", func(t *testing.T) {
		_, err := preview(unprotected, protected+other+permission)
		require.Error(t, err)
	})
	t.Run("destroy", func(t *testing.T) {
		require.ErrorContains(t, s.Destroy(t.Context()), "Cluster persia-dev, NodePool persia-dev-")
		c := newCluster(t, s)
		assert.Len(t, c.rolePods("adult-income"), 4, "nothing has been taken away")
	})
	t.Run("without protection", func(t *testing.T) {
		up(repository)
		_, err := preview(unprotected, unprotected+other)
		require.Error(t, err, "a job runs in the cluster")
		changes, err := preview(unprotected, unprotected+other+permission)
		require.NoError(t, err)
		assert.Greater(t, changes[apitype.OpReplace], 30, "all that is inside the cluster goes with it: %v", changes)
	})
}
