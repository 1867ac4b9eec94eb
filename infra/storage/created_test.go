package storage_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// created are all kinds of storage that a stack makes.
var created = map[string]struct {
	typeToken, id string
	// name is the logical name, and repeated the name of the storage at Google Cloud.
	name, repeated string
	source         func(create map[string]any) map[string]any
	// agent is the service that uses the storage's key.
	agent string
	// existing is the source with its defaults, and without create.
	existing map[string]any
	// inputs are what Google Cloud gets, by their paths.
	inputs map[string]any
}{
	"bucket": {testkit.Bucket, "some-bucket", "gs://some-bucket", "some-bucket", func(create map[string]any) map[string]any {
		return source("gcsFuse", map[string]any{"bucket": "some-bucket", "create": create})
	}, "gs-project-accounts", source("gcsFuse", map[string]any{"bucket": "some-bucket"}), nil},
	"Filestore": {testkit.FilestoreInstance, instanceID, "us-central1-a/fs", "fs", func(create map[string]any) map[string]any {
		return source("filestore", map[string]any{"instance": "fs", "create": create})
	}, "cloud-filer", source("filestore", map[string]any{"instance": "fs", "location": "us-central1-a", "share": "checkpoints"}), map[string]any{
		"name": "fs", "location": "us-central1-a", "tier": "ZONAL", "fileShares.name": "checkpoints", "fileShares.capacityGb": 1024.0,
		"networks[0].network": "projects/my-project/global/networks/persia-dev", "networks[0].modes[0]": "MODE_IPV4",
	}},
	"disk": {testkit.Disk, diskID, "us-central1-a/d", "d", func(create map[string]any) map[string]any {
		return source("persistentDisk", map[string]any{"disk": "d", "create": create})
	}, "compute-system", source("persistentDisk", map[string]any{"disk": "d", "project": "my-project", "zones": []any{"us-central1-a"}}), map[string]any{
		"name": "d", "zone": "us-central1-a", "type": "pd-ssd", "size": 1024.0, "diskEncryptionKey.kmsKeySelfLink": kmsKey,
	}},
	"regional disk": {testkit.RegionDisk, regionDiskID, "us-central1/d", "d", func(create map[string]any) map[string]any {
		return source("persistentDisk", map[string]any{"disk": "d", "zones": bothZones, "create": create})
	}, "compute-system", source("persistentDisk", map[string]any{"disk": "d", "project": "my-project", "zones": bothZones}), map[string]any{
		"name": "d", "region": "us-central1", "type": "pd-balanced", "size": 1024.0, "diskEncryptionKey.kmsKeyName": kmsKey, "replicaZones": bothZones,
	}},
}

var bothZones = []any{"us-central1-a", "us-central1-b"}

// left returns storage of 1 TiB that an earlier life of a stack created.
func left(stack string) testkit.Cloud {
	labels := map[string]any{"persia-stack": stack}
	if stack == "" {
		labels = map[string]any{}
	}
	return testkit.Cloud{
		"some-bucket": {"name": "some-bucket", "location": "US-CENTRAL1", "labels": labels},
		instanceID: {"tier": "ZONAL", "effectiveLabels": labels,
			"fileShares": []any{map[string]any{"capacityGb": 1024, "name": "checkpoints"}},
			"networks":   []any{map[string]any{"network": "projects/my-project/global/networks/persia-dev", "ipAddresses": []any{"10.0.0.2"}}}},
		diskID: {"size": 1024, "type": "https://www.googleapis.com/compute/v1/projects/my-project/zones/us-central1-a/diskTypes/pd-balanced", "effectiveLabels": labels},
		"projects/my-project/global/networks/persia-dev": {"name": "persia-dev"},
		regionDiskID: {"size": 1024, "type": "pd-balanced", "effectiveLabels": labels},
	}
}

// TestCreated checks that created storage comes before the volume, outlives the stack unless the
// stack file says otherwise, and has the stack's label and its key.
func TestCreated(t *testing.T) {
	for name, test := range created {
		t.Run(name, func(t *testing.T) {
			create := map[string]any{"kmsKey": kmsKey}
			if test.typeToken == testkit.Disk {
				create["type"] = "pd-ssd"
			}
			recorder := programtest.MustDeploy(t, withVolume(t, test.source(create)), nil)
			made := recorder.One(t, test.typeToken, test.name)
			for path, want := range test.inputs {
				assert.Equal(t, want, testkit.At(t, made, path), path)
			}
			assert.True(t, made.RegisterRPC.GetRetainOnDelete())
			assert.Empty(t, made.ID, "there is nothing to take over")
			assert.Equal(t, programtest.ThisStack, testkit.At(t, made, `labels["persia-stack"]`))
			grant := recorder.One(t, testkit.KeyGrant, kmsKey+"/"+test.agent)
			assert.Equal(t, "serviceAccount:service-123456789012@"+test.agent+".iam.gserviceaccount.com", testkit.At(t, grant, "member"))
			assert.Equal(t, kmsKey, testkit.At(t, grant, "cryptoKeyId"))
			assert.True(t, grant.RegisterRPC.GetRetainOnDelete(), "without it the data cannot be read")
			assert.Contains(t, made.Dependencies(), grant.URN)
			identities := recorder.Some("gcp:projects/serviceIdentity:ServiceIdentity")
			assert.Equal(t, test.typeToken == testkit.FilestoreInstance, len(identities) == 1, "a new project has all other service agents")
			for _, identity := range identities {
				assert.Equal(t, "file.googleapis.com", testkit.At(t, identity, "service"))
				assert.Contains(t, grant.Dependencies(), identity.URN, "IAM grants nothing to an account that does not exist")
				// Filestore takes a range of the network, which must not be one of the cluster's.
				assert.Contains(t, recorder.Before(made), recorder.One(t, testkit.Cluster, "persia-dev").URN)
			}

			volume := recorder.One(t, testkit.Volume, "more")
			assert.Contains(t, volume.Dependencies(), made.URN)
			assert.Contains(t, recorder.One(t, testkit.Claim, "more").Dependencies(), volume.URN)
			network := recorder.One(t, testkit.Network, "persia-dev")
			assert.Equal(t, test.typeToken == testkit.FilestoreInstance, network.RegisterRPC.GetRetainOnDelete(), "only an instance needs its network")
			assert.Empty(t, network.ID)

			deleted := programtest.MustDeploy(t, withVolume(t, test.source(map[string]any{"deleteWithStack": test.repeated})), nil)
			assert.False(t, deleted.One(t, test.typeToken, test.name).RegisterRPC.GetRetainOnDelete())
			assert.False(t, deleted.One(t, testkit.Network, "persia-dev").RegisterRPC.GetRetainOnDelete())
			assert.Empty(t, deleted.Some(testkit.KeyGrant))
		})
	}
}

// TestTakenOver checks that the stack imports what an earlier life of it created, and nothing else.
func TestTakenOver(t *testing.T) {
	for name, test := range created {
		t.Run(name, func(t *testing.T) {
			configuration := withVolume(t, test.source(map[string]any{}))
			recorder := programtest.MustDeploy(t, configuration, left(programtest.ThisStack))
			assert.Equal(t, test.id, recorder.One(t, test.typeToken, test.name).RegisterRPC.GetImportId())
			network := map[string]string{testkit.FilestoreInstance: "projects/my-project/global/networks/persia-dev"}[test.typeToken]
			assert.Equal(t, network, recorder.One(t, testkit.Network, "persia-dev").RegisterRPC.GetImportId(), "only an instance needs it")

			recorder, err := programtest.Deploy(t, configuration, left("persia-other"))
			require.ErrorContains(t, err, "exists already, and the stack persia-other has created it; remove create")
			assert.Equal(t, testkit.First, recorder.URNs())
			recorder, err = programtest.Deploy(t, configuration, left(""))
			require.ErrorContains(t, err, "exists already, and no stack has created it; remove create")
			assert.Equal(t, testkit.First, recorder.URNs())
		})
	}
}

// TestUnlikeWhatIsThere: before anything is registered, storage of the stack is there, and like the stack file or smaller.
func TestUnlikeWhatIsThere(t *testing.T) {
	sized := func(size string, volume map[string]any) map[string]any {
		volume["size"] = size
		return volume
	}
	with := func(kind string, create map[string]any) map[string]any { return created[kind].source(create) }
	instance := func() map[string]any {
		return source("filestore", map[string]any{"instance": "fs", "location": "us-central1-a", "share": "checkpoints"})
	}
	disk := func() map[string]any {
		return source("persistentDisk", map[string]any{"disk": "d", "zones": []any{"us-central1-a"}})
	}
	moved := instance()
	moved["filestore"].(map[string]any)["ip"] = "10.8.8.8"
	const changed, shrinks, larger, missing = ": Invalid value: .* cannot be changed", "size: Invalid value: .* never shrinks; write ", `size: Invalid value: "2Ti": .* write 1024Gi or less`, "does not exist; correct the name, or write create: {}"
	for name, c := range map[string]struct {
		source map[string]any
		absent bool
		says   string
	}{
		"location of a bucket":        {with("bucket", map[string]any{"location": "EU"}), false, "gcsFuse.create.location" + changed},
		"tier of an instance":         {with("Filestore", map[string]any{"tier": "BASIC_HDD"}), false, "filestore.create.tier" + changed},
		"key of an instance":          {with("Filestore", map[string]any{"kmsKey": kmsKey}), false, "filestore.create.kmsKey" + changed},
		"share of an instance":        {source("filestore", map[string]any{"instance": "fs", "share": "other", "create": map[string]any{}}), false, "filestore.share" + changed},
		"address of an instance":      {moved, false, "filestore.ip" + changed},
		"type of a disk":              {with("disk", map[string]any{"type": "pd-ssd"}), false, "persistentDisk.create.type" + changed},
		"key of a disk":               {with("disk", map[string]any{"kmsKey": kmsKey}), false, "persistentDisk.create.kmsKey" + changed},
		"key of a regional disk":      {with("regional disk", map[string]any{"kmsKey": kmsKey}), false, "persistentDisk.create.kmsKey" + changed},
		"a smaller disk":              {sized("512Gi", with("disk", map[string]any{})), false, shrinks},
		"a smaller regional disk":     {sized("512Gi", with("regional disk", map[string]any{})), false, shrinks},
		"a larger instance":           {sized("2Ti", with("Filestore", map[string]any{})), false, ""},
		"an instance beyond its band": {sized("12800Gi", with("Filestore", map[string]any{})), false, `size: Invalid value: "12800Gi": .* has 1024Gi, and grows to 9984Gi at most; write that or less. For more, add a volume`},
		"a larger disk":               {sized("2Ti", with("disk", map[string]any{})), false, ""},
		"an existing instance":        {instance(), false, ""},
		"an existing disk":            {disk(), false, ""},
		"a claim beyond an instance":  {sized("2Ti", instance()), false, larger},
		"a claim beyond a disk":       {sized("2Ti", disk()), false, larger},
		"an absent instance":          {instance(), true, missing},
		"an absent disk":              {disk(), true, missing},
	} {
		t.Run(name, func(t *testing.T) {
			there := left(programtest.ThisStack)
			if c.absent {
				there = nil
			}
			recorder, err := programtest.Deploy(t, withVolume(t, c.source), there)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Regexp(t, `persia:storage\[1\].*`+c.says, err.Error())
			assert.Equal(t, testkit.First, recorder.URNs())
		})
	}
}

// TestBucket: how long it keeps what. The golden plan of the example pedl shows who reaches it.
func TestBucket(t *testing.T) {
	bucket := func(create map[string]any) testkit.Resource {
		return programtest.MustDeploy(t, withVolume(t, created["bucket"].source(create))).One(t, testkit.Bucket, "gs://some-bucket")
	}
	kept := bucket(map[string]any{"versioning": true, "softDeleteDays": 30, "kmsKey": kmsKey,
		"deleteNoncurrent": map[string]any{"prefix": "checkpoints/", "afterDays": 90}})
	for path, want := range map[string]any{
		"versioning.enabled":                        true,
		"softDeletePolicy.retentionDurationSeconds": 30.0 * 24 * 60 * 60,
		"lifecycleRules[0].action.type":             "Delete",
		"lifecycleRules[0].condition":               map[string]any{"withState": "ARCHIVED", "matchesPrefixes": []any{"checkpoints/"}, "daysSinceNoncurrentTime": 90.0, "numNewerVersions": 1.0, "noAge": true},
		"encryption.defaultKmsKeyName":              kmsKey,
	} {
		assert.Equal(t, want, testkit.At(t, kept, path), path)
	}
	assert.NotContains(t, kept.Inputs, "forceDestroy", "it would be a difference to what is taken over")
	assert.Equal(t, true, testkit.At(t, bucket(map[string]any{"deleteWithStack": "some-bucket"}), "forceDestroy"))
}
