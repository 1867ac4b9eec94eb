package persia

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
)

// TestCheckpointRoot: nn-workers and servers write a checkpoint together, and embedding workers load it, so all must have
// the same directory of the same volume, and by the same path.
func TestCheckpointRoot(t *testing.T) {
	mount := func(volume, at string) config.Mount { return config.Mount{Volume: volume, MountPath: at} }
	claimed := func(name, claim string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}
	}
	export := corev1.Volume{Name: "export", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/"}}}
	type role = config.Role
	mounts := func(mounts ...config.Mount) role { return role{Mounts: mounts} }
	volumes := func(mounts ...corev1.VolumeMount) role { return role{VolumeMounts: mounts} }
	readOnly := config.Mount{Volume: "data", MountPath: "/data", ReadOnly: true}
	// elsewhere has where the run is recorded, if that is not beside /ckpt/clicks/1.
	elsewhere := map[string]string{
		"two volumes":                "/a/.persia/clicks/1",
		"a volume by two paths":      "/a/.persia/clicks/1",
		"a volume that servers read": "/data/.persia/clicks/1",
		"no volume":                  "/var/lib/persia/clicks/1",
		"a directory for each pod":   "/var/lib/persia/clicks/1",
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
		"an export": {[]corev1.Volume{export}, volumes(corev1.VolumeMount{Name: "export", MountPath: "/ckpt", SubPath: "a"}), volumes(corev1.VolumeMount{Name: "export", MountPath: "/ckpt", SubPath: "a"}), role{},
			map[string]string{"nn-worker": "/ckpt/clicks/1", "embedding-ps": "/ckpt/clicks/1"}},
		"two directories of an export": {[]corev1.Volume{export}, volumes(corev1.VolumeMount{Name: "export", MountPath: "/ckpt", SubPath: "a"}), volumes(corev1.VolumeMount{Name: "export", MountPath: "/ckpt", SubPath: "b"}), role{}, nil},
		"a directory for each pod":     {[]corev1.Volume{export}, volumes(corev1.VolumeMount{Name: "export", MountPath: "/ckpt", SubPathExpr: "$(REPLICA_INDEX)"}), volumes(corev1.VolumeMount{Name: "export", MountPath: "/ckpt", SubPathExpr: "$(REPLICA_INDEX)"}), role{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			job := config.Job{Name: "clicks", RunID: "1", Volumes: test.volumes, Dataloader: test.dataset,
				NNWorker: config.NNWorker{Role: test.nnWorker}, EmbeddingWorker: test.server, EmbeddingParameterServer: test.server}
			args := JobArgs{Job: job, Claims: map[string]string{"a": "a-claim", "b": "b-claim", "data": "data-claim"}}
			for _, role := range roles(job) {
				// Embedding workers have the servers' mounts here.
				mounts := strings.Replace(role.Name, "embedding-worker", "embedding-ps", 1)
				assert.Equal(t, test.want[mounts], checkpointRoot(args, role), role.Name)
				if role.Name == nnWorker {
					assert.Equal(t, cmp.Or(elsewhere[name], "/ckpt/.persia/clicks/1"), stateDirectory(args, role))
				}
			}
		})
	}
}

// TestClaimVolumes: a claim is one volume of a pod, and read-only only if all of its mounts are.
func TestClaimVolumes(t *testing.T) {
	for _, first := range []bool{true, false} {
		mounts := []config.Mount{{Volume: "a", MountPath: "/a", ReadOnly: first}, {Volume: "a", MountPath: "/b", ReadOnly: !first}, {Volume: "b", ReadOnly: true}}
		volumes := claimVolumes(map[string]string{"a": "a-claim", "b": "b-claim"}, mounts)
		assert.Len(t, volumes, 2)
		assert.False(t, volumes[0].PersistentVolumeClaim.ReadOnly)
		assert.True(t, volumes[1].PersistentVolumeClaim.ReadOnly)
	}
}
