package persia

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config"
	"persia/gcp"
	"persia/internal/testkit"
)

// TestLaunchEnvIsRefused: a stack file cannot set what the program always sets, which would have no effect.
func TestLaunchEnvIsRefused(t *testing.T) {
	volumes := config.Role{Mounts: []config.Mount{{Volume: "data", MountPath: "/data"}}}
	job := config.Job{Name: "clicks", RunID: "1", EnableMetrics: true, EmbeddingParameterServer: volumes, EmbeddingWorker: volumes, NNWorker: config.NNWorker{Role: volumes}}
	job.NNWorker.Resources.Limits = corev1.ResourceList{gcp.GPUResource: resource.MustParse("8")}
	job.ResolveContract(nil, "nats")
	args, names := JobArgs{Job: job}, namesOf(job)
	set := map[string]bool{}
	for _, role := range rolesOf(args, names) {
		for _, entry := range launchEnv(args, names, role, nil) {
			set[entry.Name] = true
		}
	}
	assert.Subset(t, set, map[string]bool{"PERSIA_CKPT_ROOT": true, "PERSIA_GPUS": true, "PERSIA_REPLICA_METRICS": true, "PERSIA_PROGRESS_FILE": true})
	for name := range set {
		_, err := testkit.Load(t, testkit.Edits{"persia:jobs[0].env[0].name": name})
		assert.ErrorContains(t, err, `persia:jobs[0].env[0].name: Invalid value: "`+name+`": is set by `)
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
