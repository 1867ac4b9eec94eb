package storage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

const (
	kmsKey = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"

	instanceID   = "projects/my-project/locations/us-central1-a/instances/fs"
	diskID       = "projects/my-project/zones/us-central1-a/disks/d"
	regionDiskID = "projects/my-project/regions/us-central1/disks/d"
)

// withVolume returns the stack dev with one more volume, which nothing mounts, and other edits.
func withVolume(t *testing.T, volume map[string]any, edits ...testkit.Edits) map[string]string {
	t.Helper()
	more := testkit.Edits{"persia:storage[1]": testkit.Edits{"name": "more", "claim": "more-pvc", "size": "1Ti"}.And(volume)}
	return programtest.ReadStack(t, "Pulumi.dev.yaml", append([]testkit.Edits{more}, edits...)...)
}

// source returns a volume over a source.
func source(name string, fields map[string]any) map[string]any { return map[string]any{name: fields} }

// pair returns a volume and its claim.
func pair(t *testing.T, recorder *testkit.Recorder, name string) (corev1.PersistentVolume, corev1.PersistentVolumeClaim) {
	t.Helper()
	return testkit.Object[corev1.PersistentVolume](t, recorder.One(t, testkit.Volume, name)),
		testkit.Object[corev1.PersistentVolumeClaim](t, recorder.One(t, testkit.Claim, name))
}

// assertPair checks the fields by which a volume and a claim find each other.
func assertPair(t *testing.T, volume corev1.PersistentVolume, claim corev1.PersistentVolumeClaim) {
	t.Helper()
	assert.Equal(t, volume.Name, claim.Spec.VolumeName)
	assert.Equal(t, claim.Name, volume.Spec.ClaimRef.Name)
	assert.Equal(t, claim.Namespace, volume.Spec.ClaimRef.Namespace)
	assert.Equal(t, "persia", claim.Namespace)
	require.NotNil(t, claim.Spec.StorageClassName)
	assert.Empty(t, *claim.Spec.StorageClassName)
	assert.Empty(t, volume.Spec.StorageClassName)
	assert.Equal(t, volume.Spec.AccessModes, claim.Spec.AccessModes)
	assert.Equal(t, volume.Spec.Capacity.Storage().String(), claim.Spec.Resources.Requests.Storage().String())
}

// onNode is that a volume is reached from the nodes with a label.
func onNode(label string, values ...string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn, Values: values}},
	}}}}
}

func csiVolume(driver, handle, fsType string, attributes map[string]string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: driver, VolumeHandle: handle, FSType: fsType, VolumeAttributes: attributes,
	}}
}

// TestSources: a pair for each kind of source.
func TestSources(t *testing.T) {
	create := corev1.HostPathDirectoryOrCreate
	for name, test := range map[string]struct {
		source   map[string]any
		cloud    testkit.Cloud
		volume   corev1.PersistentVolumeSource
		mode     corev1.PersistentVolumeAccessMode
		affinity *corev1.VolumeNodeAffinity
	}{
		"hostPath": {source: source("hostPath", map[string]any{"path": "/mnt/more"}), mode: corev1.ReadWriteOnce,
			volume: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/mnt/more", Type: &create}}},
		"NFS": {source: source("nfs", map[string]any{"server": "10.0.0.9", "path": "/exports"}), mode: corev1.ReadWriteMany,
			volume: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.9", Path: "/exports"}}},
		"iSCSI": {source: source("iscsi", map[string]any{"targetPortal": "10.0.0.3:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 2, "fsType": "xfs"}), mode: corev1.ReadWriteOnce,
			volume: corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{
				TargetPortal: "10.0.0.3:3260", IQN: "iqn.2001-04.com.example:a", Lun: 2, FSType: "xfs"}}},
		"CSI": {source: source("csi", map[string]any{"driver": "d.example.com", "volumeHandle": "h", "fsType": "xfs", "attributes": map[string]any{"a": "b"}}), mode: corev1.ReadWriteMany,
			volume: csiVolume("d.example.com", "h", "xfs", map[string]string{"a": "b"})},
		"bucket": {source: source("gcsFuse", map[string]any{"bucket": "some-bucket"}), mode: corev1.ReadWriteMany,
			volume: csiVolume("gcsfuse.csi.storage.gke.io", "some-bucket", "", nil)},
		"bucket, created": {source: source("gcsFuse", map[string]any{"bucket": "some-bucket", "create": map[string]any{}}), mode: corev1.ReadWriteMany,
			volume: csiVolume("gcsfuse.csi.storage.gke.io", "some-bucket", "", nil)},
		"Filestore": {source: source("filestore", map[string]any{"instance": "fs", "location": "us-central1-a", "share": "vol1"}), mode: corev1.ReadWriteMany,
			cloud: testkit.Cloud{instanceID: {"fileShares": []any{map[string]any{"capacityGb": 1024, "name": "vol1"}},
				"networks": []any{map[string]any{"network": "default", "ipAddresses": []any{"10.9.9.9"}}}}},
			volume: csiVolume("filestore.csi.storage.gke.io", "modeInstance/us-central1-a/fs/vol1", "", map[string]string{"ip": "10.9.9.9", "volume": "vol1"})},
		"Filestore at a written address": {source: source("filestore", map[string]any{"instance": "fs", "location": "us-central1-a", "share": "vol1", "ip": "10.8.8.8"}), mode: corev1.ReadWriteMany,
			cloud:  testkit.Cloud{instanceID: {"networks": []any{map[string]any{"network": "default", "ipAddresses": []any{"10.9.9.9", "10.8.8.8"}}}}},
			volume: csiVolume("filestore.csi.storage.gke.io", "modeInstance/us-central1-a/fs/vol1", "", map[string]string{"ip": "10.8.8.8", "volume": "vol1"})},
		"Filestore, created": {source: source("filestore", map[string]any{"instance": "fs", "create": map[string]any{}}), mode: corev1.ReadWriteMany,
			volume: csiVolume("filestore.csi.storage.gke.io", "modeInstance/us-central1-a/fs/checkpoints", "", map[string]string{"ip": "10.0.0.2", "volume": "checkpoints"})},
		"disk": {source: source("persistentDisk", map[string]any{"disk": "d", "zones": []any{"us-central1-a"}, "fsType": "xfs"}), mode: corev1.ReadWriteOnce,
			cloud:    testkit.Cloud{diskID: {"size": 2048}},
			volume:   csiVolume("pd.csi.storage.gke.io", diskID, "xfs", nil),
			affinity: onNode("topology.gke.io/zone", "us-central1-a")},
		"disk, created": {source: source("persistentDisk", map[string]any{"disk": "d", "create": map[string]any{}}), mode: corev1.ReadWriteOnce,
			volume:   csiVolume("pd.csi.storage.gke.io", diskID, "ext4", nil),
			affinity: onNode("topology.gke.io/zone", "us-central1-a")},
		"regional disk, created": {source: source("persistentDisk", map[string]any{"disk": "d", "zones": []any{"us-central1-a", "us-central1-b"}, "create": map[string]any{}}), mode: corev1.ReadWriteOnce,
			volume:   csiVolume("pd.csi.storage.gke.io", regionDiskID, "ext4", nil),
			affinity: onNode("topology.gke.io/zone", "us-central1-a", "us-central1-b")},
	} {
		t.Run(name, func(t *testing.T) {
			options := []string{"ro"}
			if test.volume.HostPath != nil {
				options = nil // the kubelet takes none there
			} else {
				if name == "bucket" {
					options = []string{"metadata-cache:ttl-secs:0"}
				}
				test.source["mountOptions"] = options
				if name == "bucket" {
					options = append(options, "implicit-dirs")
				} else if strings.HasPrefix(name, "bucket") {
					options = append(options, "implicit-dirs", "metadata-cache:ttl-secs:60")
				}
			}
			test.source["labels"] = map[string]any{"team": "ranking"}
			volume, claim := pair(t, programtest.MustDeploy(t, withVolume(t, test.source), test.cloud), "more")
			assertPair(t, volume, claim)
			assert.Equal(t, "1Ti", volume.Spec.Capacity.Storage().String())
			assert.Equal(t, test.volume, volume.Spec.PersistentVolumeSource)
			assert.Equal(t, []corev1.PersistentVolumeAccessMode{test.mode}, volume.Spec.AccessModes)
			assert.Equal(t, test.affinity, volume.Spec.NodeAffinity)
			assert.Equal(t, corev1.PersistentVolumeReclaimRetain, volume.Spec.PersistentVolumeReclaimPolicy)
			assert.Equal(t, options, volume.Spec.MountOptions)
			for _, labels := range []map[string]string{volume.Labels, claim.Labels} {
				assert.Equal(t, "ranking", labels["team"])
				assert.Equal(t, "checkpoints", labels["app.kubernetes.io/name"])
			}
			assert.Empty(t, volume.Annotations)
		})
	}
}
