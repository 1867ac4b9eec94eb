package persia_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"

	"persia/internal/programtest"
	"persia/internal/pulumitest"
)

// TestCompletion: every job, also one without metrics, has a Kubernetes Job that asks
// the very coordinator that its replicas report to.
func TestCompletion(t *testing.T) {
	configuration := programtest.ReadStack(t, "dev")
	programtest.Edit(t, configuration, "persia:jobs", func(jobs any) {
		jobs.([]any)[0].(map[string]any)["enableMetrics"] = false
	})
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	job := pulumitest.Object[batchv1.Job](t, recorder.One(t, "kubernetes:batch/v1:Job", "adult-income-completion"))
	assert.Equal(t, "adult-income", job.Labels["persia_job"])
	asks := job.Spec.Template.Spec.Containers[0].Env
	require.Len(t, asks, 2)
	assert.Equal(t, "PERSIA_COORDINATOR", asks[0].Name)
	assert.Equal(t, "PERSIA_RUN", asks[1].Name)
	for _, role := range []string{"nn-worker", "dataloader", "embedding-worker", "embedding-ps"} {
		set := pulumitest.Object[appsv1.StatefulSet](t, recorder.One(t, pulumitest.StatefulSet, "adult-income-"+role))
		env := set.Spec.Template.Spec.Containers[0].Env
		assert.Subset(t, env, asks, role)
		for _, entry := range env {
			assert.NotEqual(t, "PERSIA_REPLICA_METRICS", entry.Name, "there is no gateway")
		}
	}
}
