package persia_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/kubernetes/fake"

	"persia/internal/programtest"
	"persia/internal/status"
	"persia/internal/testkit"
)

// TestStatusOfEachEngine: whichever engine runs a job, the command status finds its completion, among other Kubernetes Jobs
// with the job's label, and reads the plan's prediction from it.
func TestStatusOfEachEngine(t *testing.T) {
	jobSet, predicts := programtest.ReadStack(t, "Pulumi.prod.yaml"), programtest.ReadStack(t, "Pulumi.prod.yaml")
	programtest.Edit(t, jobSet, "persia:jobs", func(jobs any) { jobs.([]any)[0].(map[string]any)["engine"] = "jobset" })
	programtest.Edit(t, predicts, "persia:jobs", func(jobs any) { jobs.([]any)[0].(map[string]any)["checkpointSeconds"] = 360 })
	predicts["persia:machineTypes"] = `{"a2-highgpu-8g": {"hoursBetweenFailures": 100}}`
	for engine, configuration := range map[string]map[string]string{
		"statefulset": predicts, "jobset": jobSet, "operator": programtest.LeftToOperator(t),
	} {
		recorder, err := programtest.Deploy(t, configuration)
		require.NoError(t, err)
		job := testkit.Object[batchv1.Job](t, recorder.One(t, "kubernetes:batch/v1:Job", "criteo-completion"))
		t.Run(engine, func(t *testing.T) {
			server := job.DeepCopy()
			server.Name, server.Labels["app.kubernetes.io/name"] = "criteo-embedding-ps-0", "embedding-ps"
			all, err := status.List(t.Context(), fake.NewClientset(&job, server))
			require.NoError(t, err)
			require.Len(t, all, 1)
			assert.Equal(t, "criteo", all[0].Job)
			assert.Equal(t, map[string]string{"statefulset": "87%"}[engine], all[0].Predicted)
		})
	}
}
