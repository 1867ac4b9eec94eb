package persia

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config"
)

// specOf returns a job of two nn-workers with GPUs, changed.
func specOf(change func(*config.Job)) *config.Job {
	training := &config.Job{Name: "a", RunID: "1", EnableMetrics: true, PersiaEnv: config.PersiaEnv{
		NNWorkerEntry: "/train.py", DataloaderEntry: "/load.py",
	}}
	training.NNWorker.Replicas = 2
	training.NNWorker.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	change(training)
	return training
}

func noClaims([]config.Mount) []Claim { return nil }

// TestScriptsOfAJobWithoutMetrics push nothing, though the operator names a gateway.
func TestScriptsOfAJobWithoutMetrics(t *testing.T) {
	training := specOf(func(j *config.Job) { j.EnableMetrics = false })
	spec := persiaJobSpec(JobArgs{Job: *training, Claims: noClaims})
	for _, variable := range append(spec.NNWorker.Env, spec.Dataloader.Env...) {
		assert.NotEqual(t, "PERSIA_REPLICA_METRICS", variable.Name)
	}
}

// TestOwnSharedMemory of a job takes the place of the program's.
func TestOwnSharedMemory(t *testing.T) {
	training := specOf(func(j *config.Job) {
		j.Volumes = []corev1.Volume{{Name: "memory"}}
		j.NNWorker.VolumeMounts = []corev1.VolumeMount{{Name: "memory", MountPath: "/dev/shm/"}}
	})
	spec := persiaJobSpec(JobArgs{Job: *training, Claims: noClaims})
	count := func(mounts []corev1.VolumeMount) (n int) {
		for _, mount := range mounts {
			if mount.Name == sharedMemory {
				n++
			}
		}
		return n
	}
	assert.Zero(t, count(spec.NNWorker.VolumeMounts))
	assert.Equal(t, 1, count(spec.Dataloader.VolumeMounts))
}
