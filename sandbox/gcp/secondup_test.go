package gcp

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox/gcp/google"
)

// TestSecondUp: where GKE answers something else than it was asked for, a second up has
// nothing to do all the same, neither before nor after a refresh.
func TestSecondUp(t *testing.T) {
	const key = "projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/k"
	managed := func(machine, gpu string) values {
		return values{"machineType": machine, "gpu": values{"type": gpu, "count": 8}}
	}
	for name, c := range map[string]struct{ cluster, pool values }{
		"machines with local SSDs: A3": {nil, managed("a3-highgpu-8g", "nvidia-h100-80gb")},
		"local SSDs":                   {nil, values{"localSsdCount": 2}},
		"Spot GPUs":                    {nil, values{"spot": true, "machineType": "a2-highgpu-8g", "gpu": values{"type": "nvidia-tesla-a100", "count": 8}}},
		"no gVNIC":                     {nil, values{"gvnic": false}},
		"no disk driver":               {values{"csiDrivers": values{"persistentDisk": false}}, nil},
		"legacy datapath":              {values{"dataplaneV2": false}, nil},
		"encrypted Secrets":            {values{"encryption": values{"secrets": key}}, nil},
		"encrypted boot disks":         {values{"encryption": values{"bootDisks": key}}, nil},
		"metrics in another order":     {values{"monitoring": values{"components": []any{"DCGM", "POD", "SYSTEM_COMPONENTS"}}}, nil},
		"flow logs":                    {values{"network": values{"flowLogs": true, "intranodeVisibility": true}}, nil},
		"no logs":                      {values{"logging": values{"components": []any{}}}, nil},
		"no metrics":                   {values{"monitoring": values{"components": []any{}, "managedPrometheus": false}}, nil},
		"queued provisioning":          {nil, values{"nodes": nil, "autoscaling": values{"minNodes": 0, "maxNodes": 4}, "queuedProvisioning": true}},
		"a reservation":                {nil, values{"reservation": "workers"}},
		"all that can be off":          {values{"privateNodes": false, "workloadIdentity": false, "shieldedNodes": false, "binaryAuthorization": false, "securityPosture": "DISABLED", "costManagement": false, "csiDrivers": values{"filestore": false, "gcsFuse": false}, "backup": values{"agent": false}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e, file := newStack(t, "../.."), poolStackOf(t, c.pool)
			maps.Copy(file["persia:cluster"].(values), c.cluster)
			e.up(configuration(t, file))
			e.cloud.Requests()
			assert.Empty(t, e.up(configuration(t, file)), "a second up")
			assert.Empty(t, e.refresh(), "drift")
			assert.Empty(t, e.up(configuration(t, file)), "an up after a refresh")
			assert.Empty(t, e.cloud.Requests(), "requests that change something")
		})
	}
}

// TestDiskDriver: GKE makes a cluster with the driver of its disks, whatever it is asked,
// and a later update turns it off: to be off, the driver must have been asked to be on.
func TestDiskDriver(t *testing.T) {
	e := newStack(t, "../..")
	file := poolStackOf(t)
	up := func(on bool) []string {
		file["persia:cluster"].(values)["csiDrivers"] = values{"persistentDisk": on}
		return e.up(configuration(t, file))
	}
	isOn := func() bool {
		cluster, err := e.cloud.Get(clusterKind, "projects/my-project/locations/us-central1/clusters/persia")
		require.NoError(t, err)
		on, _ := google.Lookup(cluster, "addonsConfig.gcePersistentDiskCsiDriverConfig.enabled")
		return on == true
	}
	up(false)
	assert.True(t, isOn(), "as GKE makes it")
	assert.Empty(t, up(false))
	assert.Empty(t, up(true), "it is on")
	assertOnly(t, "update "+clusterType, up(false))
	assert.False(t, isOn())
	assert.Empty(t, up(false))
}
