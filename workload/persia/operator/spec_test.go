package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config"
	"persia/workload/persia"
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

func noClaims([]config.Mount) []persia.Claim { return nil }

// TestScriptsRunThroughTheProgram checks that the operator's own variables come first: of two
// variables with the same name the later one wins.
func TestScriptsRunThroughTheProgram(t *testing.T) {
	training := specOf(func(j *config.Job) { j.NNWorker.Env = []corev1.EnvVar{{Name: "A", Value: "b"}} })
	spec := jobSpec(JobArgs{Job: *training, Claims: noClaims})
	assert.Equal(t, "/train.py", spec.PersiaEnv.NNWorkerEntry, "the job says what its author wrote")
	const metrics = "/metrics/job/a/run/1/role/"
	assert.Equal(t, []corev1.EnvVar{
		{Name: "A", Value: "b"},
		{Name: "PERSIA_ROLE", Value: "nn-worker"},
		{Name: "PERSIA_SCRIPT", Value: "/train.py"},
		{Name: "PERSIA_NN_WORKER_ENTRY", Value: "/opt/persia/entry.py"},
		{Name: "PERSIA_GPUS", Value: "8"},
		{Name: "PERSIA_REPLICA_METRICS", Value: metrics + "nn-worker/replica/$(REPLICA_INDEX)/of/$(REPLICA_SIZE)"},
		{Name: "PERSIA_NODE_RANK", Value: "$(REPLICA_INDEX)"},
		{Name: "PERSIA_NODES", Value: "$(REPLICA_SIZE)"},
		{Name: "REPLICA_INDEX", Value: "0"},
		{Name: "REPLICA_SIZE", Value: "1"},
	}, spec.NNWorker.Env)
	assert.Equal(t, []corev1.EnvVar{
		{Name: "PERSIA_ROLE", Value: "dataloader"},
		{Name: "PERSIA_SCRIPT", Value: "/load.py"},
		{Name: "PERSIA_DATALOADER_ENTRY", Value: "/opt/persia/entry.py"},
		{Name: "PERSIA_REPLICA_METRICS", Value: metrics + "dataloader/replica/$(REPLICA_INDEX)/of/$(REPLICA_SIZE)"},
	}, spec.Dataloader.Env)
	scripts := corev1.VolumeMount{Name: "launch", MountPath: "/opt/persia", ReadOnly: true}
	assert.Contains(t, spec.NNWorker.VolumeMounts, scripts)
	assert.Contains(t, spec.Dataloader.VolumeMounts, scripts)
	assert.NotContains(t, spec.EmbeddingWorker.VolumeMounts, scripts)
	assert.Equal(t, "launch", spec.Volumes[0].Name)
	assert.NotNil(t, spec.Volumes[0].ConfigMap)
}

// TestScriptsOfAJobWithoutMetrics push nothing, though the operator names a gateway.
func TestScriptsOfAJobWithoutMetrics(t *testing.T) {
	training := specOf(func(j *config.Job) { j.EnableMetrics = false })
	spec := jobSpec(JobArgs{Job: *training, Claims: noClaims})
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
	spec := jobSpec(JobArgs{Job: *training, Claims: noClaims})
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
