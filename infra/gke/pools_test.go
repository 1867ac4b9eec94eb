package gke_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestMachinesDecide checks the settings of a pool that the stack file omits and that its machine
// or image determines.
func TestMachinesDecide(t *testing.T) {
	for name, c := range map[string]struct {
		pool      settings
		gvnic     any
		localSSDs any
		disk      string
	}{
		"general purpose":               {settings{"machineType": "n2-highmem-32"}, true, nil, "pd-balanced"},
		"Ubuntu":                        {settings{"machineType": "n2-highmem-32", "imageType": "UBUNTU_CONTAINERD"}, nil, nil, "pd-balanced"},
		"memory-optimized":              {settings{"machineType": "m2-ultramem-416"}, nil, nil, "pd-balanced"},
		"memory-optimized, newer":       {settings{"machineType": "m4-ultramem-224"}, true, nil, "hyperdisk-balanced"},
		"local SSDs that are chosen":    {settings{"machineType": "n2-highmem-32", "localSsdCount": 4}, true, 4.0, "pd-balanced"},
		"A2 Ultra comes with its SSDs":  {settings{"machineType": "a2-ultragpu-2g"}, true, 2.0, "pd-balanced"},
		"A3 High comes with its SSDs":   {settings{"machineType": "a3-highgpu-8g"}, true, 16.0, "pd-balanced"},
		"A3 Ultra takes one disk alone": {settings{"machineType": "a3-ultragpu-8g"}, true, 32.0, "hyperdisk-balanced"},
		"A4":                            {settings{"machineType": "a4-highgpu-8g"}, true, 32.0, "hyperdisk-balanced"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := settings{"name": "spare", "nodes": 2, "zones": []any{"us-central1-a"}}
			got := sparePool(t, pool, c.pool, nil)
			assert.Equal(t, c.gvnic, testkit.Found(t, got, "nodeConfig.gvnic.enabled"), "gvnic")
			assert.Equal(t, c.localSSDs, testkit.Found(t, got, "nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount"), "local SSDs")
			assert.Equal(t, c.disk, testkit.Found(t, got, "nodeConfig.diskType"), "disk")
		})
	}
}

// TestProdGoesTogether: the published deployment has a driver DaemonSet on Ubuntu and
// parameter servers on M2, and GKE has gVNIC on neither.
func TestProdGoesTogether(t *testing.T) {
	prod := programtest.DeployStack(t, "prod")
	require.Equal(t, "UBUNTU_CONTAINERD", testkit.At(t, prod.One(t, testkit.NodePool, "persia-prod-nn-workers"), "nodeConfig.imageType"))
	for _, pool := range []string{"nn-workers", "embedding-ps"} {
		assert.Nil(t, testkit.Found(t, prod.One(t, testkit.NodePool, "persia-prod-"+pool), "nodeConfig.gvnic"), pool)
	}
	for _, pool := range []string{"dataloaders", "embedding-workers"} {
		assert.Equal(t, true, testkit.At(t, prod.One(t, testkit.NodePool, "persia-prod-"+pool), "nodeConfig.gvnic.enabled"), pool)
	}
}
