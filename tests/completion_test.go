package tests

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestCompletion: a job with metrics has a Kubernetes Job that asks for the very
// reports that its trainers make.
func TestCompletion(t *testing.T) {
	prod := deployStack(t, "prod")
	job := object[batchv1.Job](t, prod.one(t, "kubernetes:batch/v1:Job", "criteo-completion"))
	assert.Equal(t, "criteo", job.Labels["persia_job"])
	env := map[string]string{}
	for _, entry := range job.Spec.Template.Spec.Containers[0].Env {
		env[entry.Name] = entry.Value
	}
	set := object[appsv1.StatefulSet](t, prod.one(t, "kubernetes:apps/v1:StatefulSet", "criteo-nn-worker"))
	trainer := set.Spec.Template.Spec.Containers[0].Env
	assert.Contains(t, trainer, corev1.EnvVar{Name: "PERSIA_METRICS_GATEWAY_ADDR", Value: env["PERSIA_METRICS_GATEWAY_ADDR"]})
	assert.Contains(t, trainer, corev1.EnvVar{
		Name:  "PERSIA_FINISHED_METRIC",
		Value: "/metrics/job/" + env["PERSIA_JOB"] + "/run/" + env["PERSIA_RUN"] + "/role/nn-worker/replica/$(REPLICA_INDEX)/of/$(REPLICA_SIZE)",
	})
}

func TestNoCompletionWithoutMetrics(t *testing.T) {
	configuration := readStack(t, "dev")
	edit(t, configuration, "persia:jobs", func(jobs any) {
		jobs.([]any)[0].(map[string]any)["enableMetrics"] = false
	})
	recorder, err := deploy(t, configuration)
	require.NoError(t, err)
	for _, urn := range recorder.urns() {
		assert.NotContains(t, urn, "batch/v1:Job")
	}
	set := object[appsv1.StatefulSet](t, recorder.one(t, "kubernetes:apps/v1:StatefulSet", "adult-income-nn-worker"))
	for _, entry := range set.Spec.Template.Spec.Containers[0].Env {
		assert.NotEqual(t, "PERSIA_FINISHED_METRIC", entry.Name)
	}
}
