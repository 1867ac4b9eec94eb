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
	for engine, configuration := range map[string]map[string]string{
		"statefulset": programtest.ReadStack(t, "Pulumi.prod.yaml", testkit.Edits{
			"persia:jobs[0].checkpointSeconds": 360, "persia:machineTypes": testkit.Edits{"a2-highgpu-8g": testkit.Edits{"hoursBetweenFailures": 100}}}),
		"jobset":   programtest.ReadStack(t, "Pulumi.prod.yaml", testkit.Edits{"persia:jobs[0].engine": "jobset"}),
		"operator": programtest.LeftToOperator(t),
	} {
		job := testkit.Object[batchv1.Job](t, programtest.MustDeploy(t, configuration).One(t, "kubernetes:batch/v1:Job", "criteo-completion"))
		t.Run(engine, func(t *testing.T) {
			server := job.DeepCopy()
			server.Name, server.Labels["app.kubernetes.io/name"] = "criteo-embedding-ps-0", "embedding-ps"
			all := testkit.Must(status.List(t.Context(), fake.NewClientset(&job, server)))(t)
			require.Len(t, all, 1)
			assert.Equal(t, "criteo", all[0].Job)
			assert.Equal(t, map[string]string{"statefulset": "87%"}[engine], all[0].Predicted)
		})
	}
}
