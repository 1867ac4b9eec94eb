package gcp

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox/gcp/property"
)

const storageNetwork = "projects/my-project/global/networks/persia"

// stored are all kinds that outlive a stack.
var stored = map[string]struct {
	id     string
	inputs values
	// lookup finds the resource by its own inputs.
	lookup tokens.ModuleMember
	// grown and replaced are changes in place and of the whole.
	grown, replaced values
}{
	bucketType: {"checkpoints", values{"project": "my-project", "name": "checkpoints", "location": "US-CENTRAL1"},
		"gcp:storage/getBuckets:getBuckets", values{"versioning": values{"enabled": true}}, values{"location": "EU"}},
	instanceType: {"projects/my-project/locations/us-central1-a/instances/fs",
		values{"project": "my-project", "location": "us-central1-a", "name": "fs", "tier": "ZONAL",
			"fileShares": values{"name": "checkpoints", "capacityGb": 1024},
			"networks":   []any{values{"network": storageNetwork, "modes": []any{"MODE_IPV4"}}}},
		"gcp:filestore/getInstance:getInstance",
		values{"fileShares": values{"name": "checkpoints", "capacityGb": 2048}}, values{"tier": "REGIONAL"}},
	diskType: {"projects/my-project/zones/us-central1-a/disks/d",
		values{"project": "my-project", "zone": "us-central1-a", "name": "d", "type": "pd-ssd", "size": 100},
		"gcp:compute/getDisk:getDisk", values{"size": 200}, values{"size": 50}},
	regionDiskType: {"projects/my-project/regions/us-central1/disks/d",
		values{"project": "my-project", "region": "us-central1", "replicaZones": []any{"us-central1-a", "us-central1-b"}, "name": "d", "type": "pd-ssd", "size": 100},
		"gcp:compute/getRegionDisk:getRegionDisk", values{"size": 200}, values{"type": "pd-standard"}},
}

func (g simulated) invoke(token tokens.ModuleMember, args resource.PropertyMap) (resource.PropertyMap, error) {
	resp, err := g.Invoke(g.Context(), plugin.InvokeRequest{Tok: token, Args: args})
	return resp.Properties, err
}

// importOf reads a resource that the stack does not know.
func (g simulated) importOf(token, id string) plugin.ReadResponse {
	g.Helper()
	resp, err := g.Read(g.Context(), plugin.ReadRequest{URN: urn(token), ID: resource.ID(id)})
	require.NoError(g, err)
	return resp
}

// TestStored checks that every command finds and imports existing storage, never creates it twice,
// and leaves no file after a deletion.
func TestStored(t *testing.T) {
	for token, kind := range stored {
		t.Run(token, func(t *testing.T) {
			g := newGoogle(t)
			dir := filepath.Join(t.TempDir(), "storage")
			g.next(dir)
			inputs := g.check(token, properties(kind.inputs))
			lookup := inputs.Copy()
			lookup["prefix"] = resource.NewProperty("check")
			found, err := g.invoke(kind.lookup, lookup)
			if token == bucketType {
				require.NoError(t, err)
				assert.Empty(t, found["buckets"].ArrayValue())
			} else {
				assert.ErrorContains(t, err, kind.id+" not found")
			}
			assert.Nil(t, g.importOf(token, kind.id).Outputs, "there is nothing to import")

			created := g.create(token, inputs)
			assert.Equal(t, resource.ID(kind.id), created.ID)
			_, err = g.tryCreate(token, inputs)
			assert.ErrorContains(t, err, "Error 409")
			assert.ErrorContains(t, err, "already exists")

			g.next(dir)
			found, err = g.invoke(kind.lookup, lookup)
			require.NoError(t, err)
			if token == bucketType {
				require.Len(t, found["buckets"].ArrayValue(), 1)
				assert.Equal(t, "US-CENTRAL1", found["buckets"].ArrayValue()[0].ObjectValue()["location"].StringValue())
			}
			imported := g.importOf(token, kind.id)
			g.states[key(token, inputs)] = held{imported.ID, inputs, imported.Outputs}
			assert.Equal(t, plugin.DiffNone, g.diff(token, inputs, inputs).Changes, "imported as it was made")

			grown := properties(merge(kind.inputs, kind.grown))
			diff := g.diff(token, inputs, grown)
			assert.Equal(t, plugin.DiffSome, diff.Changes)
			assert.False(t, diff.Replace(), "%v", diff.DetailedDiff)
			assert.True(t, g.diff(token, inputs, properties(merge(kind.inputs, kind.replaced))).Replace())
			g.update(token, inputs, grown)
			assert.Equal(t, plugin.DiffNone, g.diff(token, grown, grown).Changes)

			require.NoError(t, g.delete(token, grown))
			assert.Nil(t, g.importOf(token, kind.id).Outputs)
			_, err = os.Stat(dir)
			assert.ErrorIs(t, err, os.ErrNotExist, "nothing is left")
		})
	}
}

// TestNetworkOfAnInstance: it outlives the stack for as long as the instance does.
func TestNetworkOfAnInstance(t *testing.T) {
	g := newGoogle(t)
	network := properties(values{"project": "my-project", "name": "persia", "autoCreateSubnetworks": false})
	g.create(networkType, network)
	instance := properties(stored[instanceType].inputs)
	g.create(instanceType, instance)
	assert.ErrorContains(t, g.delete(networkType, network), "already being used by 'projects/my-project/locations/us-central1-a/instances/fs'")
	_, err := g.tryCreate(networkType, network)
	assert.ErrorContains(t, err, "already exists")
	assert.Equal(t, "persia", property.Text(g.importOf(networkType, storageNetwork).Inputs, "name"))

	require.NoError(t, g.delete(instanceType, instance))
	require.NoError(t, g.delete(networkType, network))
	assert.Nil(t, g.importOf(networkType, storageNetwork).Outputs)
}

// TestAddressOfAnInstance: the address is unknown in the preview of a new instance, and known
// in the preview of an update.
func TestAddressOfAnInstance(t *testing.T) {
	g, inputs := newGoogle(t), properties(stored[instanceType].inputs)
	planned, err := g.Create(t.Context(), plugin.CreateRequest{URN: urn(instanceType), Properties: inputs, Preview: true})
	require.NoError(t, err)
	address := func(state resource.PropertyMap) resource.PropertyValue {
		return property.Objects(state, "networks")[0]["ipAddresses"]
	}
	assert.True(t, address(planned.Properties).IsComputed())
	made := g.create(instanceType, inputs)
	assert.Equal(t, "10.200.0.2", address(made.Properties).ArrayValue()[0].StringValue())
	update, err := g.Update(t.Context(), plugin.UpdateRequest{URN: urn(instanceType), ID: made.ID, OldInputs: inputs, OldOutputs: made.Properties,
		NewInputs: properties(merge(stored[instanceType].inputs, stored[instanceType].grown)), Preview: true})
	require.NoError(t, err)
	assert.Equal(t, address(made.Properties), address(update.Properties))
}

func merge(inputs, changes values) values {
	merged := maps.Clone(inputs)
	maps.Copy(merged, changes)
	return merged
}
