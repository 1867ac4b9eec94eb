package sandbox

import (
	"testing"

	"github.com/stretchr/testify/assert"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"persia/cmd/persia/status"
)

func TestResult(t *testing.T) {
	job := func(name string, conditions ...batchv1.JobCondition) batchv1.Job {
		return batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID(name), Labels: map[string]string{"persia_job": name}},
			Status:     batchv1.JobStatus{Conditions: conditions},
		}
	}
	complete := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}
	failed := batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "5 attempts"}
	notYet := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionFalse}
	pods := []corev1.Pod{endedPod("b", ""), endedPod("c", "running attempt 5\nfailed: 5 attempts failed\n"), endedPod("d", "wget: bad address")}
	tests := map[string]struct {
		jobs  []batchv1.Job
		ended bool
		err   string
	}{
		"complete":              {[]batchv1.Job{job("a", complete)}, true, ""},
		"one of two":            {[]batchv1.Job{job("a", complete), job("b")}, false, ""},
		"not yet":               {[]batchv1.Job{job("a", notYet)}, false, ""},
		"failed":                {[]batchv1.Job{job("a", complete), job("b", failed)}, true, "the training job b has failed: BackoffLimitExceeded: 5 attempts"},
		"failed, and why":       {[]batchv1.Job{job("c", failed)}, true, "the training job c has failed: 5 attempts failed"},
		"failed by itself":      {[]batchv1.Job{job("d", failed)}, true, "the training job d has failed: BackoffLimitExceeded: 5 attempts"},
		"failed, others run on": {[]batchv1.Job{job("a"), job("b", failed)}, false, ""},
		"none":                  {nil, true, "no training job reports its completion"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ended, err := result(status.Of(test.jobs, pods))
			assert.Equal(t, test.ended, ended)
			if test.err == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.err)
			}
		})
	}
}

// endedPod returns a pod of the Job with a UID, with the last words of its container.
func endedPod(job, words string) corev1.Pod {
	controller := true
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Labels:          map[string]string{"persia_job": job, "app.kubernetes.io/name": "completion"},
			OwnerReferences: []metav1.OwnerReference{{UID: types.UID(job), Controller: &controller}},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: words}},
		}}},
	}
}
