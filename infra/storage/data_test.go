package storage_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// inState returns the outputs of created storage in the state of the stack.
func inState(typeToken string, labels map[string]any) map[string]any {
	outputs := map[string]any{"project": "my-project", "labels": labels}
	maps.Copy(outputs, map[string]map[string]any{
		testkit.Bucket:            {"name": "some-bucket"},
		testkit.FilestoreInstance: {"name": "fs", "location": "us-central1-a", "fileShares": map[string]any{"name": "checkpoints"}},
		testkit.Disk:              {"name": "d", "zone": "us-central1-a"},
		testkit.RegionDisk:        {"name": "d", "region": "us-central1", "replicaZones": []any{"https://www.googleapis.com/compute/v1/projects/my-project/zones/us-central1-a", "us-central1-b"}},
	}[typeToken])
	return outputs
}

// TestNoEditDeletes: no edit makes Pulumi delete storage that the state has for deletion, until the data is kept or
// deleted. A first update that failed leaves no outputs.
func TestNoEditDeletes(t *testing.T) {
	const refused = "for deletion (deleteWithStack), and no volume creates it any more: Pulumi would delete it now, with all data. To keep the data, write the volume back with create, without deleteWithStack"
	owned := map[string]any{"persia-stack": programtest.ThisStack}
	for name, test := range created {
		t.Run(name, func(t *testing.T) {
			without := withVolume(t, source("nfs", map[string]any{"server": "nfs", "path": "/a"}))
			deletable := inState(test.typeToken, map[string]any{"persia-stack": programtest.ThisStack, "persia-deleted-with-stack": "true"})
			// last returns a cloud with a resource in the state.
			last := func(there testkit.Cloud, outputs map[string]any) testkit.Cloud {
				if there == nil {
					there = testkit.Cloud{}
				}
				there["resources"] = map[string]any{"urn:pulumi:dev::persia::" + test.typeToken + "::" + test.name: map[string]any{"outputs": outputs}}
				return there
			}
			for state, cloud := range map[string]func() testkit.Cloud{
				"marked":                    func() testkit.Cloud { return last(left(programtest.ThisStack), deletable) },
				"imported, and not updated": func() testkit.Cloud { return last(left(programtest.ThisStack), inState(test.typeToken, nil)) },
				"forced": func() testkit.Cloud {
					forced := inState(test.typeToken, owned)
					forced["forceDestroy"] = true
					return last(left(programtest.ThisStack), forced)
				},
			} {
				for _, edited := range []map[string]string{without, withVolume(t, test.existing)} {
					recorder, err := programtest.Deploy(t, edited, cloud())
					require.ErrorContains(t, err, refused, state)
					assert.Equal(t, testkit.First, recorder.URNs(), "nothing else is registered")
				}
			}
			for state, cloud := range map[string]testkit.Cloud{
				"the storage is gone": last(nil, deletable),
				"the state keeps it":  last(left(programtest.ThisStack), inState(test.typeToken, owned)),
			} {
				_, err := programtest.Deploy(t, without, cloud)
				require.NoError(t, err, state)
			}
			unseen := last(left(programtest.ThisStack), deletable)
			unseen["denied"] = nil
			_, err := programtest.Deploy(t, without, unseen)
			require.ErrorContains(t, err, "look for ", "storage is not gone because Google denies the look-up")
			kept := programtest.MustDeploy(t, withVolume(t, test.source(map[string]any{})), last(left(programtest.ThisStack), deletable)).One(t, test.typeToken, test.name)
			assert.True(t, kept.RegisterRPC.GetRetainOnDelete(), "from now on it may be removed")
			assert.Equal(t, owned, testkit.At(t, kept, "labels"))
			still := programtest.MustDeploy(t, withVolume(t, test.source(map[string]any{"deleteWithStack": test.repeated})), last(left(programtest.ThisStack), deletable))
			assert.Equal(t, deletable["labels"], testkit.At(t, still.One(t, test.typeToken, test.name), "labels"))
		})
	}
}

// TestOneGrantOfAKey checks that all users of a key share one grant, because IAM stores it once,
// and that the grant belongs to none of them: a disk that outlives the stack needs it.
func TestOneGrantOfAKey(t *testing.T) {
	recorder := programtest.MustDeploy(t, withVolume(t, created["disk"].source(map[string]any{"kmsKey": kmsKey}),
		testkit.Edits{"persia:cluster.encryption": map[string]any{"bootDisks": kmsKey, "secrets": kmsKey}}))
	grants := recorder.All(t, testkit.KeyGrant)
	require.Len(t, grants, 2, "one for each service")
	for _, grant := range grants {
		assert.True(t, grant.RegisterRPC.GetRetainOnDelete())
		assert.Contains(t, grant.RegisterRPC.GetParent(), "persia:iam:Keys::", "it belongs neither to the cluster nor to a volume")
		assert.Contains(t, recorder.One(t, testkit.Cluster, "persia-dev").Dependencies(), grant.URN)
	}
	secrets := recorder.One(t, testkit.KeyGrant, kmsKey+"/container-engine-robot")
	assert.Equal(t, "serviceAccount:service-123456789012@container-engine-robot.iam.gserviceaccount.com", testkit.At(t, secrets, "member"))
	assert.Equal(t, "roles/cloudkms.cryptoKeyEncrypterDecrypter", testkit.At(t, secrets, "role"))
	compute := recorder.One(t, testkit.KeyGrant, kmsKey+"/compute-system")
	assert.Contains(t, recorder.Before(recorder.One(t, testkit.Disk, "us-central1-a/d")), compute.URN)
	assert.Contains(t, recorder.Before(recorder.All(t, testkit.NodePool)[0]), compute.URN)
}
