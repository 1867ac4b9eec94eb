package persia_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestEnvironmentOrder: the program's, the job's, the role's own, and the later
// wins.
func TestEnvironmentOrder(t *testing.T) {
	configuration := programtest.ReadStack(t, "dev")
	programtest.Edit(t, configuration, "persia:jobs", func(jobs any) {
		job := jobs.([]any)[0].(map[string]any)
		job["env"] = []any{
			map[string]any{"name": "RUST_BACKTRACE", "value": "job"},
			map[string]any{"name": "NCCL_DEBUG", "value": "job"},
		}
		job["nnWorker"].(map[string]any)["env"] = []any{map[string]any{"name": "NCCL_DEBUG", "value": "role"}}
	})
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	set := testkit.Object[appsv1.StatefulSet](t, recorder.One(t, testkit.StatefulSet, "adult-income-nn-worker"))
	got := map[string]string{}
	for _, entry := range set.Spec.Template.Spec.Containers[0].Env {
		require.NotContains(t, got, entry.Name)
		got[entry.Name] = entry.Value
	}
	assert.Equal(t, "job", got["RUST_BACKTRACE"])
	assert.Equal(t, "role", got["NCCL_DEBUG"])
}

func TestWithoutMetrics(t *testing.T) {
	configuration := programtest.ReadStack(t, "dev")
	programtest.Edit(t, configuration, "persia:jobs", func(jobs any) {
		jobs.([]any)[0].(map[string]any)["enableMetrics"] = false
	})
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	for _, registration := range recorder.Resources {
		assert.NotContains(t, registration.Name, "metrics-gateway")
	}
	set := testkit.Object[appsv1.StatefulSet](t, recorder.One(t, testkit.StatefulSet, "adult-income-dataloader"))
	for _, entry := range set.Spec.Template.Spec.Containers[0].Env {
		assert.NotEqual(t, "PERSIA_METRICS_GATEWAY_ADDR", entry.Name)
	}
}

// TestLongestJobName: the longest name that configuration allows gives objects
// whose names nothing has cut.
func TestLongestJobName(t *testing.T) {
	// A StatefulSet's pods carry its name, a hyphen and a hash of ten
	// characters in a label.
	const labelLimit, hash = 63, 11
	longest := labelLimit - hash - len("-embedding-worker")
	for length, valid := range map[int]bool{longest: true, longest + 1: false} {
		name := strings.Repeat("j", length)
		configuration := programtest.ReadStack(t, "dev")
		programtest.Edit(t, configuration, "persia:jobs", func(jobs any) { jobs.([]any)[0].(map[string]any)["name"] = name })
		recorder, err := programtest.Deploy(t, configuration)
		if !valid {
			assert.ErrorContains(t, err, "persia:jobs[0].name")
			continue
		}
		require.NoError(t, err)
		for _, role := range []string{"nn-worker", "dataloader", "embedding-worker", "embedding-ps"} {
			set := testkit.Object[appsv1.StatefulSet](t, recorder.One(t, testkit.StatefulSet, name+"-"+role))
			assert.Equal(t, name+"-"+role, set.Name)
		}
	}
}
