package persia_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"persia/cmd/persia/status"
	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestEndOfEachEngine: whichever engine runs a job, the command status sees its end by the completion,
// and waits for no other Kubernetes Job with the job's label. It also reads the plan's prediction from that Job.
func TestEndOfEachEngine(t *testing.T) {
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
		server := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: "criteo-embedding-ps-0", Namespace: job.Namespace,
			Labels: map[string]string{"persia_job": "criteo", "app.kubernetes.io/name": "embedding-ps"},
		}}
		for end, want := range map[batchv1.JobConditionType]string{
			"": "", batchv1.JobComplete: "", batchv1.JobFailed: "the training job criteo has failed: BackoffLimitExceeded: 3",
		} {
			t.Run(engine+" "+string(end), func(t *testing.T) {
				job := job.DeepCopy()
				if end != "" {
					job.Status.Conditions = []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "3"}}
				}
				all, err := status.List(t.Context(), fake.NewClientset(job, server))
				require.NoError(t, err)
				require.Len(t, all, 1)
				assert.Equal(t, "criteo", all[0].Job)
				assert.Equal(t, map[string]string{"statefulset": "87%"}[engine], all[0].Predicted)
				ended, err := status.Ended(all)
				assert.Equal(t, end != "", ended)
				if want == "" {
					assert.NoError(t, err)
				} else {
					assert.EqualError(t, err, want)
				}
			})
		}
	}
}
