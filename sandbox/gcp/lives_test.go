package gcp

import (
	"maps"
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nextLife is a stack without a state on what an earlier life of it has left.
func (e *engine) nextLife() *engine {
	return &engine{simulated: e.simulated, folder: e.folder, state: map[resource.URN]known{}, objects: map[resource.URN]inCluster{}}
}

// TestBackupPlanOfAnEarlierLife: the plan stays with its backups when the stack goes, and
// the next life takes it over instead of making another for the same cluster.
func TestBackupPlanOfAnEarlierLife(t *testing.T) {
	file := poolStackOf(t)
	maps.Copy(file["persia:cluster"].(values), values{
		"deletionProtection": false, "backup": values{"plan": values{"schedule": "0 4 * * *"}},
	})
	e := newStack(t, "../..")
	for _, life := range []string{"first", "second", "third"} {
		did := e.up(configuration(t, file))
		assert.Equal(t, life != "first", slices.Contains(did, "import gcp:gkebackup/backupPlan:BackupPlan"), "%s life: %v", life, did)
		assert.Empty(t, e.up(configuration(t, file)), "%s life: a second up", life)
		e.destroy()
		plans, err := e.cloud.List("gkebackup.backupPlan")
		require.NoError(t, err)
		assert.Equal(t, []string{"projects/my-project/locations/us-central1/backupPlans/persia"}, slices.Sorted(maps.Keys(plans)), "after the %s life", life)
		e = e.nextLife()
	}
}
