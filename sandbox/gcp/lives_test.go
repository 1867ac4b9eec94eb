package gcp

import (
	"maps"
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nextLife returns a stack without a state, in a cloud that an earlier life of the stack left
// behind.
func (e *engine) nextLife() *engine {
	return &engine{simulated: e.simulated, folder: e.folder, state: map[resource.URN]known{}, objects: map[resource.URN]inCluster{}}
}

// TestBackupPlanOfAnEarlierLife checks that destroy keeps the backup plan, and that the next life
// takes it over instead of creating another for the same cluster.
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

// TestNetworkOfAFailedUp checks that destroy keeps the network of a Filestore instance, even if the
// stack never created the instance. The next life takes it over, and the backup plan with it.
func TestNetworkOfAFailedUp(t *testing.T) {
	file := poolStackOf(t)
	maps.Copy(file["persia:cluster"].(values), values{
		"deletionProtection": false, "backup": values{"plan": values{"schedule": "0 4 * * *"}},
	})
	file["persia:storage"] = []any{values{"name": "checkpoints", "size": "2560Gi", "filestore": values{
		"instance": "checkpoints", "share": "vol1", "location": "us-central1-a", "create": values{"tier": "ZONAL"},
	}}}
	e := newStack(t, "../..")
	e.refused = instanceType
	require.ErrorContains(t, e.tryUp(configuration(t, file)), "Quota limit reached")
	e.refused = ""
	e.destroy()

	e = e.nextLife()
	did := e.up(configuration(t, file))
	for _, kind := range []string{"import gcp:compute/network:Network", "import gcp:gkebackup/backupPlan:BackupPlan", "create " + instanceType} {
		assert.Contains(t, did, kind)
	}
	assert.Empty(t, e.up(configuration(t, file)), "a second up")
	assert.Empty(t, e.refresh(), "drift")
}
