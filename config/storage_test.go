package config

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/capacity"
	"persia/config/pod"
)

// over is a second volume, which nothing mounts, with a source.
func over(source string, fields edits) edits {
	return edits{"persia:storage[1]": map[string]any{"name": "b", "size": "1Ti", source: fields}}
}

// and are edits together.
func (e edits) and(more edits) edits {
	all := maps.Clone(e)
	maps.Copy(all, more)
	return all
}

const (
	volumeB = "persia:storage[1]"
	kmsKey  = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
)

// TestStorageRefused: what is wrong with a volume only because of the rest of the
// stack file.
func TestStorageRefused(t *testing.T) {
	mountB := edits{"persia:jobs[0].nnWorker.mounts": []any{edits{"volume": "b", "mountPath": "/b"}}}
	readB := edits{"persia:jobs[0].nnWorker.mounts": []any{edits{"volume": "b", "mountPath": "/b", "readOnly": true}},
		volumeB + ".accessModes": []any{"ReadOnlyMany"}}
	disk := over("persistentDisk", edits{"disk": "d", "zones": []any{"us-central1-a"}})
	testRefused(t, []refusal{
		{"Filestore without its driver", over("filestore", edits{"instance": "fs", "create": edits{}}).and(edits{"persia:cluster.csiDrivers": edits{"filestore": false}}),
			"persia:cluster.csiDrivers.filestore", []string{"must be true", "persia:storage[1].filestore"}},
		{"disk without its driver", over("persistentDisk", edits{"disk": "d", "create": edits{}}).and(edits{"persia:cluster.csiDrivers": edits{"persistentDisk": false}}),
			"persia:cluster.csiDrivers.persistentDisk", []string{"must be true", "persia:storage[1].persistentDisk"}},
		{"disk under several nodes", disk.and(mountB),
			volumeB + ".accessModes", []string{"ReadWriteOnce", "up to 2 nodes (pools trainers)", "use filestore or gcsFuse"}},
		{"disk away from the pool", disk.and(readB).and(edits{
			"persia:cluster.zones": []any{"us-central1-a", "us-central1-b"}, "persia:nodePools[0].zones": []any{"us-central1-b"},
			"persia:nodePools[0].nodes": 2, "persia:nodePools[1].zones": []any{"us-central1-a"}, "persia:nodePools[2].zones": []any{"us-central1-a"}}),
			volumeB + ".persistentDisk.zones", []string{"pool trainers", "us-central1-b too"}},
		{"disk that the machines do not take", over("persistentDisk", edits{"disk": "d", "create": edits{"type": "hyperdisk-balanced"}}).and(readB),
			volumeB + ".persistentDisk.create.type", []string{"a2-highgpu-8g", "write pd-balanced"}},
		{"directory on a read-only root", over("hostPath", edits{"path": "/mnt/data"}).and(mountB).and(edits{
			"persia:nodePools[0].nodes": 1, "persia:jobs[0].nnWorker.replicas": 1, "persia:nvidiaDriver": edits{"installer": "managed"}}),
			volumeB + ".hostPath.path", []string{"/mnt/data", "pool trainers", "Container-Optimized OS", "/var/lib/persia"}},
		{"mount path of the job and of a role", edits{"persia:jobs[0].nnWorker.mounts": []any{edits{"volume": "checkpoints", "mountPath": "/checkpoints"}}},
			"persia:jobs[0].nnWorker.mounts[0].mountPath", []string{"/checkpoints", "a mount of the job"}},
		{"mount path twice in a role", edits{"persia:jobs[0].nnWorker.mounts": []any{
			edits{"volume": "checkpoints", "mountPath": "/a"}, edits{"volume": "checkpoints", "mountPath": "/a"}}},
			"persia:jobs[0].nnWorker.mounts[1].mountPath", []string{"/a", "mounts[0]"}},
		{"volume of a role that is not there", edits{"persia:jobs[0].dataloader.mounts": []any{edits{"volume": "data", "mountPath": "/data"}}},
			"persia:jobs[0].dataloader.mounts[0].volume", []string{`"data"`, "volumes: checkpoints"}},
	})
}

// TestSidecarCounts: what GKE puts into a pod that mounts a bucket takes room on its
// node, by the role's own mounts too, and once for several buckets.
func TestSidecarCounts(t *testing.T) {
	s, err := Load(stackFile(t, over("gcsFuse", edits{"bucket": "other", "sidecar": edits{"cpu": "1", "memory": "128Mi"}}).and(edits{
		"persia:jobs[0].mounts":              nil,
		"persia:jobs[0].dataloader.mounts":   []any{edits{"volume": "checkpoints", "mountPath": "/a"}, edits{"volume": "b", "mountPath": "/b"}},
		"persia:jobs[0].nnWorker.mounts":     []any{edits{"volume": "checkpoints", "mountPath": "/a"}},
		"persia:nodePools[0].disk":           edits{"sizeGb": 200},
		"persia:nodePools[1].disk":           edits{"sizeGb": 200},
		"persia:cluster.authorizedNetworks":  nil,
		"persia:jobs[0].embeddingWorker.env": []any{},
	})), nil)
	require.NoError(t, err)
	sidecars := map[string]capacity.Resources{}
	for _, r := range s.Jobs[0].Roles() {
		sidecars[r.Field] = s.podRequests(&s.Jobs[0], r.Role).Minus(pod.Requests(r.Resources))
	}
	assert.Equal(t, map[string]capacity.Resources{
		"nnWorker":                 {MilliCPU: 250, MemoryBytes: 256 * capacity.MiB, EphemeralBytes: 5 * capacity.GiB},
		"dataloader":               {MilliCPU: 1000, MemoryBytes: 256 * capacity.MiB, EphemeralBytes: 5 * capacity.GiB},
		"embeddingWorker":          {},
		"embeddingParameterServer": {},
	}, sidecars)
}

// TestStorageWarnings: data is deleted only by words of the stack file's own, and not
// silently.
func TestStorageWarnings(t *testing.T) {
	warnings := func(changes edits) []string {
		s, err := Load(stackFile(t, changes), nil)
		require.NoError(t, err)
		return s.storageWarnings()
	}
	assert.Empty(t, warnings(over("gcsFuse", edits{"bucket": "other", "create": edits{}})))
	for name, test := range map[string]struct {
		changes edits
		want    string
	}{
		"bucket":       {over("gcsFuse", edits{"bucket": "other", "create": edits{"deleteWithStack": "other"}}), "`pulumi destroy` deletes gs://other with all checkpoints"},
		"Filestore":    {over("filestore", edits{"instance": "fs", "create": edits{"deleteWithStack": "fs"}}), "deletes Filestore instance fs in us-central1-a with all checkpoints"},
		"driver":       {over("csi", edits{"driver": "d.example.com", "volumeHandle": "h"}).and(edits{volumeB + ".reclaimPolicy": "Delete"}), "deletes d.example.com h with all checkpoints"},
		"old versions": {over("gcsFuse", edits{"bucket": "other", "create": edits{"versioning": true, "deleteNoncurrent": edits{"prefix": "a/", "afterDays": 30}}}), "deletes what was overwritten or deleted in gs://other/a/ after 30 days"},
	} {
		t.Run(name, func(t *testing.T) {
			found := warnings(test.changes)
			require.Len(t, found, 1)
			assert.Contains(t, found[0], volumeB+": ")
			assert.Contains(t, found[0], test.want)
		})
	}
}

// TestCreatedDisks: those of PEDL's database are among them, and a regional disk
// counts in both zones.
func TestCreatedDisks(t *testing.T) {
	s, err := Load(stackFile(t, withPEDL(over("persistentDisk", edits{"disk": "d", "zones": []any{"us-central1-a", "us-central1-b"}, "create": edits{"type": "pd-ssd"}}))), nil)
	require.NoError(t, err)
	assert.Equal(t, []capacity.Disk{{Type: "pd-ssd", GB: 1024}, {Type: "pd-ssd", GB: 1024}, {Type: "pd-balanced", GB: 100}}, s.createdDisks())
}
