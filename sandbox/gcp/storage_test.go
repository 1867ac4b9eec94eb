package gcp

import (
	"maps"
	"os"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
			"networks":   []any{values{"network": storageNetwork}}},
		"gcp:filestore/getInstance:getInstance",
		values{"fileShares": values{"name": "checkpoints", "capacityGb": 2048}}, values{"tier": "REGIONAL"}},
	diskType: {"projects/my-project/zones/us-central1-a/disks/d",
		values{"project": "my-project", "zone": "us-central1-a", "name": "d", "type": "pd-ssd", "size": 100},
		"gcp:compute/getDisk:getDisk", values{"size": 200}, values{"size": 50}},
	regionDiskType: {"projects/my-project/regions/us-central1/disks/d",
		values{"project": "my-project", "region": "us-central1", "name": "d", "type": "pd-ssd", "size": 100},
		"gcp:compute/getRegionDisk:getRegionDisk", values{"size": 200}, values{"type": "pd-standard"}},
}

func (g google) invoke(token tokens.ModuleMember, args resource.PropertyMap) (resource.PropertyMap, error) {
	resp, err := g.Invoke(g.Context(), plugin.InvokeRequest{Tok: token, Args: args})
	return resp.Properties, err
}

// importOf reads a resource that the stack does not know.
func (g google) importOf(token, id string) plugin.ReadResponse {
	g.Helper()
	resp, err := g.Read(g.Context(), plugin.ReadRequest{URN: urn(token), ID: resource.ID(id)})
	require.NoError(g, err)
	return resp
}

// TestStored: what is there is found, imported and not made twice, by whichever
// command, and leaves no file once it is deleted.
func TestStored(t *testing.T) {
	for token, kind := range stored {
		t.Run(token, func(t *testing.T) {
			google, inputs := newGoogle(t), properties(kind.inputs)
			lookup := inputs.Copy()
			lookup["prefix"] = resource.NewProperty("check")
			found, err := google.invoke(kind.lookup, lookup)
			if token == bucketType {
				require.NoError(t, err)
				assert.Empty(t, found["buckets"].ArrayValue())
			} else {
				assert.ErrorContains(t, err, kind.id+" not found")
			}
			assert.Nil(t, google.importOf(token, kind.id).Outputs, "there is nothing to import")

			created := google.create(token, inputs)
			assert.Equal(t, resource.ID(kind.id), created.ID)
			_, err = google.Create(t.Context(), plugin.CreateRequest{URN: urn(token), Properties: inputs})
			assert.ErrorContains(t, err, "Error 409")
			assert.ErrorContains(t, err, "already exists")

			// The next command has another provider.
			google.Provider = newProvider("7.38.0", gke{}, google.storage)
			found, err = google.invoke(kind.lookup, lookup)
			require.NoError(t, err)
			if token == bucketType {
				require.Len(t, found["buckets"].ArrayValue(), 1)
				assert.Equal(t, "US-CENTRAL1", found["buckets"].ArrayValue()[0].ObjectValue()["location"].StringValue())
			}
			imported := google.importOf(token, kind.id)
			assert.Equal(t, inputs, imported.Inputs)
			assert.Equal(t, created.Properties, imported.Outputs)

			grown := properties(merge(kind.inputs, kind.grown))
			diff, err := google.Diff(t.Context(), plugin.DiffRequest{URN: urn(token), OldInputs: inputs, NewInputs: grown})
			require.NoError(t, err)
			assert.Equal(t, plugin.DiffSome, diff.Changes)
			assert.False(t, diff.Replace(), "%v", diff.DetailedDiff)
			diff, err = google.Diff(t.Context(), plugin.DiffRequest{URN: urn(token), OldInputs: inputs, NewInputs: properties(merge(kind.inputs, kind.replaced))})
			require.NoError(t, err)
			assert.True(t, diff.Replace(), "%v", diff.DetailedDiff)
			google.update(token, inputs, grown)
			assert.Equal(t, grown, google.importOf(token, kind.id).Inputs)

			require.NoError(t, google.delete(token, grown))
			assert.Nil(t, google.importOf(token, kind.id).Outputs)
			_, err = os.Stat(google.storage.dir)
			assert.ErrorIs(t, err, os.ErrNotExist, "nothing is left")
		})
	}
}

// TestNetworkOfAnInstance: it outlives the stack for as long as the instance does.
func TestNetworkOfAnInstance(t *testing.T) {
	google := newGoogle(t)
	network := properties(values{"project": "my-project", "name": "persia", "autoCreateSubnetworks": false})
	google.create(networkType, network)
	google.create(networkType, network)
	assert.Nil(t, google.importOf(networkType, storageNetwork).Outputs)

	instance := properties(stored[instanceType].inputs)
	google.create(instanceType, instance)
	assert.ErrorContains(t, google.delete(networkType, network), "already being used by projects/my-project/locations/us-central1-a/instances/fs")
	_, err := google.Create(t.Context(), plugin.CreateRequest{URN: urn(networkType), Properties: network})
	assert.ErrorContains(t, err, "already exists")
	assert.Equal(t, network, google.importOf(networkType, storageNetwork).Inputs)

	require.NoError(t, google.delete(instanceType, instance))
	require.NoError(t, google.delete(networkType, network))
}

// TestAddressOfAnInstance is not known in the preview of a new one, and stays in
// that of an update.
func TestAddressOfAnInstance(t *testing.T) {
	google, inputs := newGoogle(t), properties(stored[instanceType].inputs)
	planned, err := google.Create(t.Context(), plugin.CreateRequest{URN: urn(instanceType), Properties: inputs, Preview: true})
	require.NoError(t, err)
	assert.True(t, planned.Properties["networks"].IsComputed())
	made := google.create(instanceType, inputs).Properties
	address := made["networks"].ArrayValue()[0].ObjectValue()["ipAddresses"]
	assert.Equal(t, "10.200.0.2", address.ArrayValue()[0].StringValue())
	update, err := google.Update(t.Context(), plugin.UpdateRequest{URN: urn(instanceType), OldInputs: inputs, OldOutputs: made,
		NewInputs: properties(merge(stored[instanceType].inputs, stored[instanceType].grown)), Preview: true})
	require.NoError(t, err)
	assert.Equal(t, made["networks"], update.Properties["networks"])
}

func merge(inputs, changes values) values {
	merged := maps.Clone(inputs)
	maps.Copy(merged, changes)
	return merged
}
