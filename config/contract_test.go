package config

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// TestContract: nn-workers and servers write a checkpoint together, and embedding workers load it, so all must have
// the same directory of the same volume, and by the same path.
func TestContract(t *testing.T) {
	mount := func(volume, at string) Mount { return Mount{Volume: volume, MountPath: at} }
	claimed := func(name, claim string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}
	}
	export := corev1.Volume{Name: "export", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/"}}}
	disk := corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}}}
	inline := corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "data.csi.example.com"}}}
	type role = Role
	mounts := func(mounts ...Mount) role { return role{Mounts: mounts} }
	volumes := func(mounts ...corev1.VolumeMount) role { return role{VolumeMounts: mounts} }
	readOnly := Mount{Volume: "data", MountPath: "/data", ReadOnly: true}
	own := volumes(corev1.VolumeMount{Name: "own", MountPath: "/ckpt"})
	// elsewhere has where the run is recorded, if that is not beside /ckpt/clicks/1.
	elsewhere := map[string]string{
		"two volumes":                "/a/.persia/clicks/1",
		"a volume by two paths":      "/a/.persia/clicks/1",
		"a volume that servers read": "/data/.persia/clicks/1",
		"no volume":                  "/var/lib/persia/clicks/1",
		"a directory for each pod":   "/var/lib/persia/clicks/1",
		"a disk of one node":         "/var/lib/persia/clicks/1",
		"an inline CSI volume":       "/var/lib/persia/clicks/1",
	}
	for name, test := range map[string]struct {
		volumes                   []corev1.Volume
		nnWorker, server, dataset role
		want                      map[string]string
	}{
		"one volume": {nil, mounts(mount("a", "/ckpt")), mounts(mount("a", "/ckpt")), mounts(mount("a", "/ckpt")),
			map[string]string{"nn-worker": "/ckpt/clicks/1", "embedding-ps": "/ckpt/clicks/1", "dataloader": "/ckpt/clicks/1"}},
		"nn-workers have another volume before it": {nil, mounts(mount("data", "/data"), mount("a", "/ckpt")), mounts(mount("a", "/ckpt")), mounts(mount("data", "/data")),
			map[string]string{"nn-worker": "/ckpt/clicks/1", "embedding-ps": "/ckpt/clicks/1"}},
		"servers have another volume before it": {nil, mounts(mount("a", "/ckpt")), mounts(mount("data", "/data"), mount("a", "/ckpt")), role{},
			map[string]string{"nn-worker": "/ckpt/clicks/1", "embedding-ps": "/ckpt/clicks/1"}},
		"two volumes": {nil, mounts(mount("a", "/a"), mount("b", "/b")), mounts(mount("b", "/b"), mount("a", "/a")), mounts(mount("b", "/b")),
			map[string]string{"nn-worker": "/a/clicks/1", "embedding-ps": "/a/clicks/1"}},
		"two volumes by one path":    {nil, mounts(mount("a", "/ckpt")), mounts(mount("b", "/ckpt")), role{}, nil},
		"a volume by two paths":      {nil, mounts(mount("a", "/a")), mounts(mount("a", "/b")), role{}, nil},
		"a volume that servers read": {nil, mounts(mount("data", "/data")), mounts(readOnly), role{}, nil},
		"no volume":                  {nil, role{}, role{}, role{}, nil},
		"a claim that the job names": {[]corev1.Volume{claimed("ckpt", "a-claim")}, volumes(corev1.VolumeMount{Name: "ckpt", MountPath: "/ckpt/"}), mounts(mount("a", "/ckpt")), role{},
			map[string]string{"nn-worker": "/ckpt/clicks/1", "embedding-ps": "/ckpt/clicks/1"}},
		"a disk of one node":   {[]corev1.Volume{disk}, own, own, role{}, nil},
		"an inline CSI volume": {[]corev1.Volume{inline}, own, own, role{}, nil},
		"an export": {[]corev1.Volume{export}, volumes(corev1.VolumeMount{Name: "export", MountPath: "/ckpt", SubPath: "a"}), volumes(corev1.VolumeMount{Name: "export", MountPath: "/ckpt", SubPath: "a"}), role{},
			map[string]string{"nn-worker": "/ckpt/clicks/1", "embedding-ps": "/ckpt/clicks/1"}},
		"two directories of an export": {[]corev1.Volume{export}, volumes(corev1.VolumeMount{Name: "export", MountPath: "/ckpt", SubPath: "a"}), volumes(corev1.VolumeMount{Name: "export", MountPath: "/ckpt", SubPath: "b"}), role{}, nil},
		"a directory for each pod":     {[]corev1.Volume{export}, volumes(corev1.VolumeMount{Name: "export", MountPath: "/ckpt", SubPathExpr: "$(REPLICA_INDEX)"}), volumes(corev1.VolumeMount{Name: "export", MountPath: "/ckpt", SubPathExpr: "$(REPLICA_INDEX)"}), role{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			job := Job{Name: "clicks", RunID: "1", Volumes: test.volumes, Dataloader: test.dataset,
				NNWorker: NNWorker{Role: test.nnWorker}, EmbeddingWorker: test.server, EmbeddingParameterServer: test.server}
			job.ResolveContract([]Volume{{Name: "a", Claim: "a-claim"}, {Name: "b", Claim: "b-claim"}, {Name: "data", Claim: "data-claim"}}, "nats")
			for _, role := range job.Roles() {
				// Embedding workers have the servers' mounts here.
				mounts := strings.Replace(role.Name, "embedding-worker", "embedding-ps", 1)
				assert.Equal(t, test.want[mounts], role.CheckpointRoot(), role.Name)
			}
			assert.Equal(t, cmp.Or(elsewhere[name], "/ckpt/.persia/clicks/1"), job.NNWorker.StateDirectory())
			read, has := ContractOf(job.Contract().Annotation())
			assert.True(t, has)
			assert.Equal(t, job.Contract(), read)
			assert.Equal(t, test.want["nn-worker"], read.Checkpoints.Path)
		})
	}
}
