package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"persia/config"
	"persia/config/stackfile"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manifestProject returns a project whose PersiaJobs are files that know nothing of the stack:
// PERSIA's own example, and the fragments of its documentation.
func manifestProject(t *testing.T) string {
	t.Helper()
	project, jobs := editStack(t, "dev"), []object{}
	for _, name := range []string{"adult-income.yml", "documentation.yml"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(project, name), text, 0o600))
		jobs = append(jobs, object{"manifest": name, "nodePool": "gpu"})
	}
	rewriteStack(t, project, "dev", func(configuration object) {
		pool := configuration["persia:nodePools"].([]any)[0].(object)
		// The documentation mounts a directory that Container-Optimized OS cannot have.
		pool["nodes"], pool["imageType"] = 2, "UBUNTU_CONTAINERD"
		configuration["persia:nats"] = object{}
		configuration["persia:jobs"] = jobs
	})
	return project
}

// assertManifests looks at the jobs of a manifestProject, and destroys it.
func (c cluster) assertManifests() {
	t := c.t
	t.Helper()
	c.assertOn("system", 1, c.pods("nats-io", "nats_cluster=persia-nats-service"))
	c.assertOn("gpu", 4, c.rolePods("adult-income"))
	c.assertOn("gpu", 4, c.rolePods("you-job-name"))

	example := c.podsOfRole("adult-income", "nn-worker")[0]
	assert.Equal(t, "1", environment(example)["ENABLE_CUDA"])
	assert.Equal(t, "/home/PERSIA/examples/src/adult-income/train.py", environment(example)["PERSIA_NN_WORKER_ENTRY"])

	documented := c.podsOfRole("you-job-name", "nn-worker")[0]
	container := documented.Spec.Containers[0]
	assert.Equal(t, "persiaml/persia-cuda-runtime:dev", container.Image)
	assert.Equal(t, "I will take effect on all pods", environment(documented)["GLOBAL_ENV"])
	assert.Equal(t, "I will take effect on NN worker pods only", environment(documented)["MODULE_RNV"])
	assert.Equal(t, "nats://persia-nats-service.nats-io.svc:4222", environment(example)["PERSIA_NATS_URL"], "the first job's")
	assert.Equal(t, "nats://you-job-name-nats.nats-io.svc:4222", environment(documented)["PERSIA_NATS_URL"], "its own")
	c.assertOn("system", 1, c.pods("nats-io", "nats_cluster=you-job-name-nats"))
	assert.Contains(t, container.VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data/", ReadOnly: true})
	loader := c.podsOfRole("you-job-name", "dataloader")[0]
	assert.Equal(t, "I will take effect on all pods", environment(loader)["GLOBAL_ENV"])
	assert.NotContains(t, environment(loader), "MODULE_RNV")

	assert.Empty(t, upChanges(t, c.s), "second up")
	require.NoError(t, c.s.Destroy(t.Context()))
	c.assertEmpty()
}

// rewriteStack changes the configuration of a stack file.
func rewriteStack(t *testing.T, project, stack string, change func(object)) {
	t.Helper()
	file, err := stackfile.Read(os.DirFS(project), stackfile.Name(stack), config.Namespace)
	require.NoError(t, err)
	change(object(file.Config))
	text, err := file.Text()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(project, stackfile.Name(stack)), text, 0o600))
}

// rolePods returns the replicas of a job's roles.
func (c cluster) rolePods(job string) []corev1.Pod {
	c.t.Helper()
	var pods []corev1.Pod
	for _, role := range []string{"nn-worker", "dataloader", "embedding-worker", "embedding-ps"} {
		pods = append(pods, c.podsOfRole(job, role)...)
	}
	return pods
}

func (c cluster) podsOfRole(job, role string) []corev1.Pod {
	c.t.Helper()
	selector := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: map[string]string{
		"persia_job": job, "app.kubernetes.io/name": role,
	}})
	pods := c.pods("persia", selector)
	require.NotEmpty(c.t, pods, "%s of %s", role, job)
	return pods
}
