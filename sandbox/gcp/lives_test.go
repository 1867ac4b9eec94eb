package gcp

import (
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

// TestNetworkOfAFailedUp checks that destroy keeps the network of a Filestore instance, even if the
// stack never created the instance. The next life takes it over.
func TestNetworkOfAFailedUp(t *testing.T) {
	file := poolStackOf(t)
	set("persia:cluster", "deletionProtection", false)(file)
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
	for _, kind := range []string{"import gcp:compute/network:Network", "create " + instanceType} {
		assert.Contains(t, did, kind)
	}
	assert.Empty(t, e.up(configuration(t, file)), "a second up")
	assert.Empty(t, e.refresh(), "drift")
}
