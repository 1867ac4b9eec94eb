package sandbox

import (
	"testing"

	"github.com/stretchr/testify/assert"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTrained(t *testing.T) {
	job := func(name string, conditions ...batchv1.JobCondition) batchv1.Job {
		return batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"persia_job": name}},
			Status:     batchv1.JobStatus{Conditions: conditions},
		}
	}
	complete := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}
	failed := batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "5 attempts"}
	notYet := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionFalse}
	tests := map[string]struct {
		jobs  []batchv1.Job
		ended bool
		err   string
	}{
		"complete":              {[]batchv1.Job{job("a", complete)}, true, ""},
		"one of two":            {[]batchv1.Job{job("a", complete), job("b")}, false, ""},
		"not yet":               {[]batchv1.Job{job("a", notYet)}, false, ""},
		"failed":                {[]batchv1.Job{job("a", complete), job("b", failed)}, true, "the training b has failed: BackoffLimitExceeded: 5 attempts"},
		"failed, others run on": {[]batchv1.Job{job("a"), job("b", failed)}, false, ""},
		"none":                  {nil, true, "enableMetrics"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ended, err := trained(test.jobs)
			assert.Equal(t, test.ended, ended)
			if test.err == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.err)
			}
		})
	}
}
