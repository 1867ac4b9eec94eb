package storage_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// lastUpdate returns a cloud in which the last update of the stack has left records of its
// storage in the outputs.
func lastUpdate(there testkit.Cloud, records ...any) testkit.Cloud {
	if there == nil {
		there = testkit.Cloud{}
	}
	there["outputs"] = map[string]any{"storage": records}
	return there
}

// record returns an update's record of the storage of a volume.
func record(volume string, source map[string]any) any {
	return map[string]any{"volume": volume, "source": source}
}

// TestRenamedVolume checks that a new name of a volume does not change its storage, which has a
// name of its own.
func TestRenamedVolume(t *testing.T) {
	for name, test := range created {
		t.Run(name, func(t *testing.T) {
			before := programtest.MustDeploy(t, withVolume(t, test.source(map[string]any{"kmsKey": kmsKey})), nil)
			volume := test.source(map[string]any{"kmsKey": kmsKey})
			volume["name"], volume["claim"] = "renamed", "renamed"
			after := programtest.MustDeploy(t, withVolume(t, volume), lastUpdate(nil, record("more", test.source(map[string]any{}))))
			for _, token := range []string{test.typeToken, testkit.KeyGrant} {
				assert.Equal(t, before.All(t, token)[0].URN, after.All(t, token)[0].URN)
			}
		})
	}
}

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

// TestNoEditDeletes checks that no edit makes Pulumi delete storage that the state has for deletion:
// the program refuses to stop registering it until the data is kept or deleted. The outputs do not
// tell: a failed update leaves them as they were.
func TestNoEditDeletes(t *testing.T) {
	const refused = "for deletion (deleteWithStack), and no volume creates it any more: Pulumi would delete it now, with all data. To keep the data, write the volume back with create, without deleteWithStack"
	owned := map[string]any{"persia-stack": programtest.ThisStack}
	for name, test := range created {
		t.Run(name, func(t *testing.T) {
			uncreated := resolved(test.typeToken, test.repeated)
			for _, fields := range uncreated {
				delete(fields.(map[string]any), "create")
			}
			without := withVolume(t, source("nfs", map[string]any{"server": "nfs", "path": "/a"}))
			deletable := inState(test.typeToken, map[string]any{"persia-stack": programtest.ThisStack, "persia-deleted-with-stack": "true"})
			// last returns a cloud with a resource in the state, and a record in the outputs of the last
			// successful update.
			last := func(there testkit.Cloud, outputs map[string]any, records ...any) testkit.Cloud {
				there = lastUpdate(there, records...)
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
				for _, edited := range []map[string]string{without, withVolume(t, uncreated)} {
					recorder, err := programtest.Deploy(t, edited, cloud())
					require.ErrorContains(t, err, refused, state)
					assert.Equal(t, []string{testkit.GoogleProvider}, recorder.URNs(), "nothing else is registered")
				}
			}
			for state, cloud := range map[string]testkit.Cloud{
				"the storage is gone":     last(nil, deletable),
				"the state keeps it":      last(left(programtest.ThisStack), inState(test.typeToken, owned)),
				"the state has forgotten": lastUpdate(left(programtest.ThisStack), record("more", resolved(test.typeToken, test.repeated))),
			} {
				_, err := programtest.Deploy(t, without, cloud)
				require.NoError(t, err, state)
			}
			kept := programtest.MustDeploy(t, withVolume(t, test.source(map[string]any{})), last(left(programtest.ThisStack), deletable)).One(t, test.typeToken, test.name)
			assert.True(t, kept.RegisterRPC.GetRetainOnDelete(), "from now on it may be removed")
			assert.Equal(t, owned, testkit.At(t, kept, "labels"))
			still := programtest.MustDeploy(t, withVolume(t, test.source(map[string]any{"deleteWithStack": test.repeated})), last(left(programtest.ThisStack), deletable))
			assert.Equal(t, deletable["labels"], testkit.At(t, still.One(t, test.typeToken, test.name), "labels"))
		})
	}
}

// TestNetworkOfWhatIsLeft: Google deletes no network with an instance in it, and an
// instance that a volume has left is still there.
func TestNetworkOfWhatIsLeft(t *testing.T) {
	share := record("share", source("filestore", map[string]any{"instance": "fs", "location": "us-central1-a", "share": "checkpoints", "create": map[string]any{"tier": "ZONAL"}}))
	network := func(there testkit.Cloud) testkit.Resource {
		return programtest.MustDeploy(t, programtest.ReadStack(t, "dev"), lastUpdate(there, share)).One(t, testkit.Network, "persia-dev")
	}
	assert.True(t, network(left(programtest.ThisStack)).RegisterRPC.GetRetainOnDelete())
	assert.False(t, network(nil).RegisterRPC.GetRetainOnDelete(), "the instance was deleted by hand")
	ofFailed := lastUpdate(left(programtest.ThisStack))
	ofFailed["resources"] = map[string]any{"urn:pulumi:dev::persia::" + testkit.FilestoreInstance + "::us-central1-a/fs": map[string]any{
		"outputs": inState(testkit.FilestoreInstance, map[string]any{"persia-stack": programtest.ThisStack})}}
	failed := programtest.MustDeploy(t, programtest.ReadStack(t, "dev"), ofFailed).One(t, testkit.Network, "persia-dev")
	assert.True(t, failed.RegisterRPC.GetRetainOnDelete(), "an update that failed had created it")
	elsewhere := left(programtest.ThisStack)
	elsewhere[instanceID]["networks"] = []any{map[string]any{"network": "default"}}
	assert.False(t, network(elsewhere).RegisterRPC.GetRetainOnDelete(), "it is in another network")
}

// TestOneGrantOfAKey checks that all users of a key share one grant, because IAM stores it once,
// and that the grant belongs to none of them: a disk that outlives the stack needs it.
func TestOneGrantOfAKey(t *testing.T) {
	configuration := withVolume(t, created["disk"].source(map[string]any{"kmsKey": kmsKey}))
	programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
		cluster.(map[string]any)["encryption"] = map[string]any{"bootDisks": kmsKey, "secrets": kmsKey}
	})
	recorder := programtest.MustDeploy(t, configuration, nil)
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

// TestFilestoreIdentity checks that the service agent of Filestore, which a new project does not
// have, exists before IAM grants it anything.
func TestFilestoreIdentity(t *testing.T) {
	const identityType = "gcp:projects/serviceIdentity:ServiceIdentity"
	recorder := programtest.MustDeploy(t, withVolume(t, created["Filestore"].source(map[string]any{"kmsKey": kmsKey})), nil)
	identity := recorder.One(t, identityType, "filestore")
	assert.Equal(t, "file.googleapis.com", testkit.At(t, identity, "service"))
	assert.Contains(t, recorder.One(t, testkit.KeyGrant, kmsKey+"/cloud-filer").Dependencies(), identity.URN)
	assert.Empty(t, programtest.MustDeploy(t, withVolume(t, created["disk"].source(map[string]any{"kmsKey": kmsKey})), nil).Some(identityType))
}
