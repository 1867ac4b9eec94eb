package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"persia/capacity"
	"persia/internal/testkit"
)

// TestVolumeRefused checks the message for each mistake.
func TestVolumeRefused(t *testing.T) {
	testkit.Refused(t, []testkit.Refusal{
		// Volumes.
		{"mount options of a hostPath", over("hostPath", edits{"path": "/var/lib/a"}).And(edits{volumeB + ".mountOptions": []any{"ro"}}),
			volumeB + ".mountOptions", []string{`["ro"]`, "not supported by hostPath", "readOnly"}},
		{"port that is none", over("iscsi", edits{"targetPortal": "10.0.0.5:99999", "iqn": "iqn.2001-04.com.example:a", "lun": 0}),
			volumeB + ".iscsi.targetPortal", []string{`"10.0.0.5:99999"`, "from 1 to 65535", "3260"}},
		{"iSCSI without an initiator", over("iscsi", edits{"targetPortal": "10.0.0.5", "iqn": "iqn.2001-04.com.example:a", "lun": 0}).And(edits{"persia:jobs[0].embeddingParameterServer.mounts": []any{edits{"volume": "b", "mountPath": "/b"}}, "persia:nodePools[2].imageType": "COS_CONTAINERD"}),
			volumeB + ".iscsi", []string{`"10.0.0.5"`, "pool ps", "no iSCSI initiator", "UBUNTU_CONTAINERD"}},
		{"Filestore nowhere", over("filestore", edits{"instance": "fs", "location": "iowa", "share": "s"}),
			volumeB + ".filestore.location", []string{`"iowa"`, "us-central1-a", "us-central1"}},
		{"bucket with a capital", edits{"persia:storage[0].gcsFuse.bucket": "Persia"},
			"persia:storage[0].gcsFuse.bucket", []string{"Persia", "3 to 63 lower case"}},
		{"bucket twice", edits{"persia:storage[1]": edits{"name": "b", "size": "1Gi", "gcsFuse": edits{"bucket": "persia-checkpoints"}}},
			"persia:storage[1]", []string{"persia-checkpoints", "persia:storage[0]"}},
		{"ReadWriteOnce under several nodes", edits{"persia:storage[0].accessModes": []any{"ReadWriteOnce"}},
			"persia:storage[0].accessModes", []string{"ReadWriteOnce", "up to 7 nodes", "write [ReadWriteMany]"}},
	})
}

// over adds a second volume with a source, which no role mounts.
func over(source string, fields edits) edits {
	return edits{"persia:storage[1]": map[string]any{"name": "b", "size": "1Ti", source: fields}}
}

const (
	volumeB = "persia:storage[1]"
	kmsKey  = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
)

// TestSidecarCounts checks that the plan counts the sidecar of a bucket, also for mounts of
// the role, and once for several buckets.
func TestSidecarCounts(t *testing.T) {
	s := testkit.Must(testkit.Load(t, over("gcsFuse", edits{"bucket": "other", "sidecar": edits{"cpu": "1", "memory": "128Mi"}}).And(edits{
		"persia:jobs[0].mounts":            nil,
		"persia:jobs[0].dataloader.mounts": []any{edits{"volume": "checkpoints", "mountPath": "/a"}, edits{"volume": "b", "mountPath": "/b"}},
		"persia:jobs[0].nnWorker.mounts":   []any{edits{"volume": "checkpoints", "mountPath": "/a"}},
		"persia:nodePools[0].disk":         edits{"sizeGb": 200},
		"persia:nodePools[1].disk":         edits{"sizeGb": 200},
	})))(t)
	sidecars := map[string]capacity.Resources{}
	for _, r := range s.Jobs[0].Roles() {
		sidecars[r.Field], _ = s.Jobs[0].GCSFuseSidecar(r.Kind)
	}
	assert.Equal(t, map[string]capacity.Resources{
		"nnWorker":                 {MilliCPU: 250, MemoryBytes: 320 * capacity.MiB, EphemeralBytes: 5 * capacity.GiB},
		"dataloader":               {MilliCPU: 1000, MemoryBytes: 320 * capacity.MiB, EphemeralBytes: 5 * capacity.GiB},
		"embeddingWorker":          {},
		"embeddingParameterServer": {},
	}, sidecars)
}

// TestVolumeWarned checks the warnings about data that is deleted or never written.
func TestVolumeWarned(t *testing.T) {
	const options = "persia:storage[0].mountOptions"
	readOnly := edits{options: []any{"ro"}}
	testkit.Warned(t, []testkit.Refusal{
		{"read-only option", readOnly, options, []string{"contains ro", "cannot write", "remove ro"}},
		{"read-only option of read-only mounts", readOnly.And(edits{"persia:jobs[0].mounts[0].readOnly": true}), options, nil},
		{"list cache as a flag", edits{options: []any{"kernel_list_cache_ttl_secs=60"}}, options + "[0]", []string{"remove it"}},
		{"list cache of read-only mounts", edits{options: []any{"file-system:kernel-list-cache-ttl-secs:-1"}, "persia:jobs[0].mounts[0].readOnly": true}, options + "[0]", nil},
		{"no list cache", edits{options: []any{"kernel-list-cache-ttl-secs=0"}}, options + "[0]", nil},
		{"profile with a list cache", edits{options: []any{"profile:aiml-serving"}}, options + "[0]", []string{"remove it"}},
		{"metadata without end", edits{options: []any{"metadata-cache:ttl-secs:-1"}}, options + "[0]", []string{"metadata-cache:ttl-secs:60"}},
		{"metadata for a minute", edits{options: []any{"metadata-cache-ttl-secs=60"}}, options + "[0]", nil},
		{"missing files without end", edits{options: []any{"metadata-cache:negative-ttl-secs:-1"}}, options + "[0]", []string{"nor a script a new file"}},
		{"metadata for an hour", edits{options: []any{"stat-cache-ttl=1h"}}, options + "[0]", []string{"at most a minute"}},
		{"attributes of NFS for an hour", over("nfs", edits{"server": "10.0.0.2", "path": "/b"}).And(edits{volumeB + ".mountOptions": []any{"hard", "actimeo=3600"},
			"persia:jobs[0].nnWorker.mounts": []any{edits{"volume": "b", "mountPath": "/b"}}}), volumeB + ".mountOptions[1]", []string{"with actimeo=3600", "at most 60"}},
		{"bucket on another continent", over("gcsFuse", edits{"bucket": "other", "create": edits{"location": "EU"}}), volumeB + ".gcsFuse.create.location", []string{"EU is far from the cluster in us-central1", "billed", "remove it before"}},
		{"bucket on the continent", over("gcsFuse", edits{"bucket": "other", "create": edits{"location": "us"}}), volumeB + ".gcsFuse.create.location", nil},
		{"a bucket that stays", over("gcsFuse", edits{"bucket": "other", "create": edits{}}), volumeB, nil},
		{"a bucket that goes", over("gcsFuse", edits{"bucket": "other", "create": edits{"deleteWithStack": "other"}}), volumeB, []string{"`pulumi destroy` deletes gs://other with all checkpoints"}},
		{"a volume that its driver deletes", over("csi", edits{"driver": "d.example.com", "volumeHandle": "h"}).And(edits{volumeB + ".reclaimPolicy": "Delete"}), volumeB, []string{"deletes d.example.com h with all checkpoints"}},
	})
}

// TestCreatedDisksTakeQuota checks that a regional disk counts in both zones, and the disk of PEDL's database in one.
func TestCreatedDisksTakeQuota(t *testing.T) {
	ssd := func(changes edits) int64 {
		s := testkit.Must(testkit.Load(t, changes))(t)
		for _, quota := range s.Plan().Quotas {
			if quota.Name == "SSD_TOTAL_GB" {
				return quota.Amount
			}
		}
		return 0
	}
	zones := []any{"us-central1-a", "us-central1-b"}
	disk := over("persistentDisk", edits{"disk": "d", "zones": zones, "create": edits{"type": "pd-ssd"}})
	assert.EqualValues(t, 2*1024, ssd(disk)-ssd(nil))
	assert.EqualValues(t, 100, ssd(withPEDL(nil))-ssd(nil))
}
