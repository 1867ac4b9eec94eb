package config

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"persia/capacity"
)

// over is a second volume, which nothing mounts, over a source.
func over(source string, fields edits) edits {
	return edits{"persia:volumes[1]": map[string]any{"name": "b", "size": "1Ti", source: fields}}
}

// and are edits together.
func (e edits) and(more edits) edits {
	all := maps.Clone(e)
	maps.Copy(all, more)
	return all
}

// onTheDisk has the trainers alone mount the volume b, on one node of a zone.
func onTheDisk(zones []any, fields edits) edits {
	return over("persistentDisk", fields).and(edits{
		"persia:cluster.zones":              []any{"us-central1-a", "us-central1-b"},
		"persia:nodePools[0].zones":         zones,
		"persia:nodePools[0].nodes":         2,
		"persia:nodePools[1].zones":         []any{"us-central1-a"},
		"persia:nodePools[2].zones":         []any{"us-central1-a"},
		"persia:jobs[0].nnWorker.mounts":    []any{edits{"volume": "b", "mountPath": "/b", "readOnly": true}},
		"persia:volumes[1].accessModes":     []any{"ReadOnlyMany"},
		"persia:cluster.authorizedNetworks": nil,
	})
}

const (
	volumeB = "persia:volumes[1]"
	kmsKey  = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
)

func TestVolumesRefused(t *testing.T) {
	instance := edits{"instance": "fs", "create": edits{}}
	existing := edits{
		"persia:project": nil, "persia:nodePools[0].gpu": nil, "persia:nodePools[0].machineType": "n2-highmem-128",
		"persia:jobs[0].nnWorker.resources": edits{"limits": edits{"cpu": 80, "memory": "600Gi"}},
		"persia:nodePools[1].labels":        nil,
		"persia:nvidiaDriver.installer":     "managed",
		"persia:cluster":                    edits{"name": "shared", "existing": edits{"context": "c", "systemPool": "ps"}},
	}
	testRefused(t, []refusal{
		// Sizes and names.
		{"reclaim policy unknown", over("nfs", edits{"server": "nfs", "path": "/a"}).and(edits{volumeB + ".reclaimPolicy": "Recycle"}),
			volumeB + ".reclaimPolicy", []string{"Recycle", "Retain or Delete"}},
		{"reclaim policy without a driver", over("nfs", edits{"server": "nfs", "path": "/a"}).and(edits{volumeB + ".reclaimPolicy": "Delete"}),
			volumeB + ".reclaimPolicy", []string{"Delete", "no driver", "remove it"}},
		{"reclaim policy of what is created", over("filestore", instance).and(edits{volumeB + ".reclaimPolicy": "Delete"}),
			volumeB + ".reclaimPolicy", []string{"Delete", "create.deleteWithStack: true"}},
		{"label of the program", over("nfs", edits{"server": "nfs", "path": "/a"}).and(edits{volumeB + ".labels": edits{"app.kubernetes.io/name": "x"}}),
			volumeB + ".labels[app.kubernetes.io/name]", []string{"writes itself", "prefix of your own"}},
		{"label of a volume invalid", over("nfs", edits{"server": "nfs", "path": "/a"}).and(edits{volumeB + ".labels": edits{"team": "a b"}}),
			volumeB + ".labels[team]", []string{`"a b"`, "valid label"}},
		{"two sources", over("nfs", edits{"server": "nfs", "path": "/a"}).and(edits{volumeB + ".csi": edits{"driver": "d", "volumeHandle": "h"}}),
			volumeB + ".csi", []string{"nfs is given already", "exactly one of nfs and csi"}},

		// Sources.
		{"local without its node", over("local", edits{"path": "/disk", "node": ""}),
			volumeB + ".local.node", []string{"Required", "kubectl get nodes"}},
		{"NFS server invalid", over("nfs", edits{"server": "nfs server", "path": "/a"}),
			volumeB + ".nfs.server", []string{"nfs server", "like 10.0.0.2"}},
		{"NFS path relative", over("nfs", edits{"server": "nfs", "path": "a"}),
			volumeB + ".nfs.path", []string{`"a"`, "write /a"}},
		{"iSCSI name invalid", over("iscsi", edits{"targetPortal": "10.0.0.3:3260", "iqn": "target", "lun": 0}),
			volumeB + ".iscsi.iqn", []string{"target", "iqn.2001-04.com.example:checkpoints"}},
		{"iSCSI portal invalid", over("iscsi", edits{"targetPortal": "a b", "iqn": "iqn.2001-04.com.example:a", "lun": 0}),
			volumeB + ".iscsi.targetPortal", []string{"a b", "10.0.0.2"}},
		{"iSCSI LUN invalid", over("iscsi", edits{"targetPortal": "10.0.0.3", "iqn": "iqn.2001-04.com.example:a", "lun": 256}),
			volumeB + ".iscsi.lun", []string{"256", "0 to 255"}},
		{"CSI without a handle", over("csi", edits{"driver": "d.example.com", "volumeHandle": ""}),
			volumeB + ".csi.volumeHandle", []string{"Required"}},
		{"CSI driver invalid", over("csi", edits{"driver": "D", "volumeHandle": "h"}),
			volumeB + ".csi.driver", []string{`"D"`, "lower case"}},
		{"CSI driver with a source of its own", over("csi", edits{"driver": "pd.csi.storage.gke.io", "volumeHandle": "h"}),
			volumeB + ".csi.driver", []string{"pd.csi.storage.gke.io", "write persistentDisk"}},
		{"Filestore without a location", over("filestore", edits{"instance": "fs", "share": "vol1"}),
			volumeB + ".filestore.location", []string{"Required", "gcloud filestore"}},
		{"Filestore without a share", over("filestore", edits{"instance": "fs", "location": "us-central1-a"}),
			volumeB + ".filestore.share", []string{"Required", "create"}},
		{"Filestore with a bad address", over("filestore", edits{"instance": "fs", "location": "us-central1-a", "share": "s", "ip": "fs"}),
			volumeB + ".filestore.ip", []string{`"fs"`, "like 10.0.0.2"}},
		{"disk without a zone", over("persistentDisk", edits{"disk": "d"}),
			volumeB + ".persistentDisk.zones", []string{"Required", "gcloud compute disks list"}},
		{"disk of three zones", over("persistentDisk", edits{"disk": "d", "zones": []any{"us-central1-a", "us-central1-b", "us-central1-c"}}),
			volumeB + ".persistentDisk.zones", []string{"one zone, or the two"}},
		{"sidecar of nothing", edits{"persia:volumes[0].gcsFuse.sidecar": edits{"cpu": "0"}},
			"persia:volumes[0].gcsFuse.sidecar.cpu", []string{"0", "its default"}},

		// What is created.
		{"Filestore tier unknown", over("filestore", edits{"instance": "fs", "create": edits{"tier": "GOLD"}}),
			volumeB + ".filestore.create.tier", []string{"GOLD", "BASIC_HDD, BASIC_SSD, ZONAL, REGIONAL or ENTERPRISE"}},
		{"Filestore too small", over("filestore", edits{"instance": "fs", "create": edits{"tier": "BASIC_SSD"}}),
			volumeB + ".size", []string{"1Ti", "from 2560Gi", "BASIC_SSD"}},
		{"Filestore between its steps", over("filestore", instance).and(edits{volumeB + ".size": "1100Gi"}),
			volumeB + ".size", []string{"1100Gi", "steps of 256Gi", "ZONAL"}},
		{"Filestore for 10^14 parameters", over("filestore", instance).and(edits{volumeB + ".size": "364Ti"}),
			volumeB + ".size", []string{"364Ti", "102400Gi", "use gcsFuse"}},
		{"regional Filestore in a zone", over("filestore", edits{"instance": "fs", "location": "us-central1-a", "create": edits{"tier": "REGIONAL"}}),
			volumeB + ".filestore.location", []string{"us-central1-a", "region, us-central1"}},
		{"zonal Filestore in a region", over("filestore", edits{"instance": "fs", "location": "us-central1", "create": edits{}}),
			volumeB + ".filestore.location[0]", []string{"us-central1", "like us-central1-a"}},
		{"Filestore share too long", over("filestore", edits{"instance": "fs", "share": "checkpoints_of_all", "create": edits{"tier": "BASIC_HDD"}}),
			volumeB + ".filestore.share", []string{"at most 16"}},
		{"key for a basic Filestore", over("filestore", edits{"instance": "fs", "create": edits{"tier": "BASIC_HDD", "kmsKey": kmsKey}}),
			volumeB + ".filestore.create.kmsKey", []string{"BASIC_HDD", "choose ZONAL"}},
		{"address of a Filestore that is created", over("filestore", edits{"instance": "fs", "ip": "10.0.0.2", "create": edits{}}),
			volumeB + ".filestore.ip", []string{"Filestore chooses", "remove it"}},
		{"soft delete for too long", over("gcsFuse", edits{"bucket": "other", "create": edits{"softDeleteDays": 91}}),
			volumeB + ".gcsFuse.create.softDeleteDays", []string{"91", "7 to 90"}},
		{"bucket that deletes at once", over("gcsFuse", edits{"bucket": "other", "create": edits{"deleteAfterDays": -1}}),
			volumeB + ".gcsFuse.create.deleteAfterDays", []string{"-1", "at least 1"}},
		{"bucket location invalid", over("gcsFuse", edits{"bucket": "other", "create": edits{"location": "us_central1"}}),
			volumeB + ".gcsFuse.create.location", []string{"US_CENTRAL1", "like us-central1"}},
		{"key of another location", over("gcsFuse", edits{"bucket": "other", "create": edits{"location": "EU", "kmsKey": kmsKey}}),
			volumeB + ".gcsFuse.create.kmsKey", []string{"location eu"}},
		{"disk too large", over("persistentDisk", edits{"disk": "d", "create": edits{}}).and(edits{volumeB + ".size": "65Ti"}),
			volumeB + ".size", []string{"65Ti", "to 65536Gi"}},
		{"disk in fractions", over("persistentDisk", edits{"disk": "d", "create": edits{}}).and(edits{volumeB + ".size": "100G"}),
			volumeB + ".size", []string{"100G", "whole Gi"}},
		{"regional disk too small", over("persistentDisk", edits{"disk": "d", "zones": []any{"us-central1-a", "us-central1-b"}, "create": edits{"type": "pd-standard"}}).
			and(edits{volumeB + ".size": "100Gi"}),
			volumeB + ".size", []string{"100Gi", "from 200Gi"}},
		{"regional hyperdisk", over("persistentDisk", edits{"disk": "d", "zones": []any{"us-central1-a", "us-central1-b"}, "create": edits{"type": "hyperdisk-balanced"}}),
			volumeB + ".persistentDisk.create.type", []string{"pd-standard, pd-balanced or pd-ssd"}},
		{"disk in another project", over("persistentDisk", edits{"disk": "d", "project": "other-project", "create": edits{}}),
			volumeB + ".persistentDisk.create", []string{"other-project", "remove project"}},

		// Who mounts them.
		{"disk for many writers", over("persistentDisk", edits{"disk": "d", "zones": []any{"us-central1-a"}}).and(edits{volumeB + ".accessModes": []any{"ReadWriteMany"}}),
			volumeB + ".accessModes[0]", []string{"ReadWriteMany", "write ReadWriteOnce", "filestore or gcsFuse"}},
		{"disk under several nodes", over("persistentDisk", edits{"disk": "d", "zones": []any{"us-central1-a"}}).
			and(edits{"persia:jobs[0].nnWorker.mounts": []any{edits{"volume": "b", "mountPath": "/b"}}}),
			volumeB + ".accessModes", []string{"ReadWriteOnce", "up to 2 nodes (pools trainers)", "use filestore or gcsFuse"}},
		{"local under several nodes", over("local", edits{"path": "/disk", "node": "n"}).
			and(edits{"persia:jobs[0].nnWorker.mounts": []any{edits{"volume": "b", "mountPath": "/b"}}}),
			volumeB + ".local", []string{"/disk", "node n", "up to 2 nodes (pools trainers)"}},
		{"read by many and written too", over("nfs", edits{"server": "nfs", "path": "/a"}).
			and(edits{volumeB + ".accessModes": []any{"ReadWriteOnce", "ReadOnlyMany"}, "persia:jobs[0].nnWorker.mounts": []any{edits{"volume": "b", "mountPath": "/b"}}}),
			volumeB + ".accessModes", []string{"up to 2 nodes", "readOnly: true in every mount"}},
		{"disk away from the pool", onTheDisk([]any{"us-central1-b"}, edits{"disk": "d", "zones": []any{"us-central1-a"}}),
			volumeB + ".persistentDisk.zones", []string{"pool trainers", "us-central1-b", "disk's zones alone"}},
		{"disk near half of the pool", onTheDisk([]any{"us-central1-a", "us-central1-b"}, edits{"disk": "d", "zones": []any{"us-central1-a"}}),
			volumeB + ".persistentDisk.zones", []string{"pool trainers", "us-central1-b too"}},
		{"disk that the machines do not take", onTheDisk([]any{"us-central1-a"}, edits{"disk": "d", "create": edits{"type": "hyperdisk-balanced"}}),
			volumeB + ".persistentDisk.create.type", []string{"a2-highgpu-8g", "write pd-balanced"}},
		{"mount path of the job and of a role", edits{"persia:jobs[0].nnWorker.mounts": []any{edits{"volume": "checkpoints", "mountPath": "/checkpoints"}}},
			"persia:jobs[0].nnWorker.mounts[0].mountPath", []string{"/checkpoints", "a mount of the job"}},
		{"mount path twice in a role", edits{"persia:jobs[0].nnWorker.mounts": []any{
			edits{"volume": "checkpoints", "mountPath": "/a"}, edits{"volume": "checkpoints", "mountPath": "/a"}}},
			"persia:jobs[0].nnWorker.mounts[1].mountPath", []string{"/a", "mounts[0]"}},
		{"volume of a role that is not there", edits{"persia:jobs[0].dataloader.mounts": []any{edits{"volume": "data", "mountPath": "/data"}}},
			"persia:jobs[0].dataloader.mounts[0].volume", []string{`"data"`, "volumes: checkpoints"}},

		// The same data twice.
		{"share twice", over("filestore", edits{"instance": "fs", "location": "us-central1-a", "share": "s"}).
			and(edits{"persia:volumes[2]": edits{"name": "c", "size": "1Ti", "filestore": edits{"instance": "fs", "location": "us-central1-a", "share": "s"}}}),
			"persia:volumes[2]", []string{"modeInstance/us-central1-a/fs/s", "volumes[1]"}},
		{"disk twice", over("persistentDisk", edits{"disk": "d", "zones": []any{"us-central1-a"}}).
			and(edits{"persia:volumes[2]": edits{"name": "c", "size": "1Ti", "persistentDisk": edits{"disk": "d", "zones": []any{"us-central1-a"}}}}),
			"persia:volumes[2]", []string{"projects/persia-project/zones/us-central1-a/disks/d", "volumes[1]"}},
		{"handle twice", over("csi", edits{"driver": "d.example.com", "volumeHandle": "h"}).
			and(edits{"persia:volumes[2]": edits{"name": "c", "size": "1Ti", "csi": edits{"driver": "d.example.com", "volumeHandle": "h"}}}),
			"persia:volumes[2]", []string{"d.example.com h", "volumes[1]"}},
		{"exported directory twice", over("nfs", edits{"server": "nfs", "path": "/a"}).
			and(edits{"persia:volumes[2]": edits{"name": "c", "size": "1Ti", "nfs": edits{"server": "nfs", "path": "/a"}}}),
			"persia:volumes[2]", []string{"nfs:/a", "volumes[1]"}},

		// What the cluster must have.
		{"Filestore without its driver", over("filestore", instance).and(edits{"persia:cluster.csiDrivers": edits{"filestore": false}}),
			"persia:cluster.csiDrivers.filestore", []string{"must be true", "persia:volumes[1].filestore"}},
		{"disk without its driver", over("persistentDisk", edits{"disk": "d", "create": edits{}}).and(edits{"persia:cluster.csiDrivers": edits{"persistentDisk": false}}),
			"persia:cluster.csiDrivers.persistentDisk", []string{"must be true", "persia:volumes[1].persistentDisk"}},
		{"create on an existing cluster", over("gcsFuse", edits{"bucket": "other", "create": edits{}}).and(existing),
			volumeB + ".gcsFuse.create", []string{"nothing of Google Cloud is created", "remove create"}},
		{"disk of no project on an existing cluster", over("persistentDisk", edits{"disk": "d", "zones": []any{"us-central1-a"}}).and(existing),
			volumeB + ".persistentDisk.project", []string{"Required", "Google Cloud project"}},
		{"Filestore of no address on an existing cluster", over("filestore", edits{"instance": "fs", "location": "us-central1-a", "share": "s"}).and(existing),
			volumeB + ".filestore.ip", []string{"Required", "address"}},
	})
}

func TestVolumesAccepted(t *testing.T) {
	for name, changes := range map[string]edits{
		"NFS, its root":         over("nfs", edits{"server": "10.0.0.2", "path": "/"}),
		"iSCSI":                 over("iscsi", edits{"targetPortal": "10.0.0.3:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0}),
		"any driver":            over("csi", edits{"driver": "d.example.com", "volumeHandle": "h", "attributes": edits{"a": "b"}}).and(edits{volumeB + ".reclaimPolicy": "Delete"}),
		"Filestore by its name": over("filestore", edits{"instance": "fs", "location": "us-central1-a", "share": "vol1"}),
		"largest Filestore":     over("filestore", edits{"instance": "fs", "create": edits{}}).and(edits{volumeB + ".size": "100Ti"}),
		"regional Filestore":    over("filestore", edits{"instance": "fs", "create": edits{"tier": "REGIONAL", "kmsKey": kmsKey}}),
		"bucket without soft delete": over("gcsFuse", edits{"bucket": "other", "create": edits{"softDeleteDays": 0, "versioning": true,
			"deleteAfterDays": 30, "kmsKey": kmsKey}}),
		"disk near its pool":       onTheDisk([]any{"us-central1-a"}, edits{"disk": "d", "create": edits{"type": "pd-ssd"}}),
		"regional disk":            onTheDisk([]any{"us-central1-a", "us-central1-b"}, edits{"disk": "d", "zones": []any{"us-central1-a", "us-central1-b"}, "create": edits{}}),
		"a role's mount elsewhere": edits{"persia:jobs[0].nnWorker.mounts": []any{edits{"volume": "checkpoints", "mountPath": "/more"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(stackFile(t, changes), nil)
			assert.NoError(t, err)
		})
	}
}

func TestVolumeDefaults(t *testing.T) {
	load := func(changes edits) Volume {
		s, err := Load(stackFile(t, changes), nil)
		require.NoError(t, err)
		return s.Volumes[1]
	}
	mode := func(v Volume) corev1.PersistentVolumeAccessMode {
		require.Len(t, v.AccessModes, 1)
		return v.AccessModes[0]
	}
	filestore := load(over("filestore", edits{"instance": "fs", "create": edits{}}))
	assert.Equal(t, Filestore{Instance: "fs", Location: "us-central1-a", Share: "checkpoints", Create: &CreateFilestore{Tier: "ZONAL"}}, *filestore.Filestore)
	assert.Equal(t, corev1.ReadWriteMany, mode(filestore))
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, filestore.ReclaimPolicy)
	assert.Equal(t, "us-central1", load(over("filestore", edits{"instance": "fs", "create": edits{"tier": "ENTERPRISE"}})).Filestore.Location)

	bucket := load(over("gcsFuse", edits{"bucket": "other", "create": edits{}}))
	assert.Equal(t, CreateBucket{Location: "US-CENTRAL1", SoftDeleteDays: new(7)}, *bucket.GCSFuse.Create)
	assert.Equal(t, Sidecar{CPU: "250m", Memory: "256Mi", EphemeralStorage: "5Gi"}, bucket.GCSFuse.Sidecar)

	disk := load(over("persistentDisk", edits{"disk": "d", "create": edits{}}))
	assert.Equal(t, "projects/persia-project/zones/us-central1-a/disks/d", disk.PersistentDisk.Handle())
	assert.Equal(t, "ext4", disk.PersistentDisk.FSType)
	assert.Equal(t, corev1.ReadWriteOnce, mode(disk))
	regional := load(over("persistentDisk", edits{"disk": "d", "zones": []any{"us-central1-a", "us-central1-b"}, "create": edits{}}))
	assert.Equal(t, "projects/persia-project/regions/us-central1/disks/d", regional.PersistentDisk.Handle())
	assert.Equal(t, corev1.ReadWriteOnce, mode(load(over("iscsi", edits{"targetPortal": "10.0.0.3", "iqn": "iqn.2001-04.com.example:a", "lun": 0}))))
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
	for _, r := range s.Jobs[0].roles() {
		sidecars[r.field] = s.podRequests(&s.Jobs[0], r.Role).Minus(requests(r.Resources))
	}
	assert.Equal(t, map[string]capacity.Resources{
		"nnWorker":                 {MilliCPU: 250, MemoryBytes: 256 * capacity.MiB, EphemeralBytes: 5 * capacity.GiB},
		"dataloader":               {MilliCPU: 1000, MemoryBytes: 256 * capacity.MiB, EphemeralBytes: 5 * capacity.GiB},
		"embeddingWorker":          {},
		"embeddingParameterServer": {},
	}, sidecars)
}

// TestVolumeWarnings: data goes only by words of the stack file's own, and not
// silently.
func TestVolumeWarnings(t *testing.T) {
	warnings := func(changes edits) []string {
		s, err := Load(stackFile(t, changes), nil)
		require.NoError(t, err)
		return s.volumeWarnings()
	}
	kept := over("gcsFuse", edits{"bucket": "other", "create": edits{}})
	assert.Empty(t, warnings(kept))
	for name, changes := range map[string]edits{
		"bucket":    over("gcsFuse", edits{"bucket": "other", "create": edits{"deleteWithStack": true}}),
		"Filestore": over("filestore", edits{"instance": "fs", "create": edits{"deleteWithStack": true}}),
		"disk":      over("persistentDisk", edits{"disk": "d", "create": edits{"deleteWithStack": true}}),
		"driver":    over("csi", edits{"driver": "d.example.com", "volumeHandle": "h"}).and(edits{volumeB + ".reclaimPolicy": "Delete"}),
	} {
		t.Run(name, func(t *testing.T) {
			require.Len(t, warnings(changes), 1)
			assert.Contains(t, warnings(changes)[0], "persia:volumes[1]: `pulumi destroy` deletes the storage of b")
		})
	}
	old := warnings(over("gcsFuse", edits{"bucket": "other", "create": edits{"deleteAfterDays": 30}}))
	require.Len(t, old, 1)
	assert.Contains(t, old[0], "after 30 days")
}
