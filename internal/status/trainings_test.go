package status

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestOf checks how jobs go on, and whether all have ended.
func TestOf(t *testing.T) {
	pod := func(job, role string, status corev1.PodStatus) corev1.Pod {
		return corev1.Pod{Status: status, ObjectMeta: metav1.ObjectMeta{
			Labels:          map[string]string{"persia_job": job, "app.kubernetes.io/name": role},
			OwnerReferences: []metav1.OwnerReference{{UID: types.UID(job), Controller: new(true)}},
		}}
	}
	replica := func(ready corev1.ConditionStatus) corev1.Pod {
		return pod("runs", "nn-worker", corev1.PodStatus{
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
			ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 1}},
		})
	}
	completion := func(job, words string) corev1.Pod {
		return pod(job, "completion", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: words}},
		}}})
	}
	pods := []corev1.Pod{
		replica(corev1.ConditionTrue), replica(corev1.ConditionFalse), completion("runs", ""),
		completion("fails", ""), completion("says why", "running attempt 5\nfailed: 5 attempts failed\n"), completion("breaks", "wget: bad address"),
		completion("answers", `{"version": 1, "phase": "failed", "reason": "5 attempts failed"}`), completion("moved", `{"version": 1, "phase": "running"}`),
	}
	complete := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}
	failed := batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "5 attempts"}
	job := func(name string, end ...batchv1.JobCondition) batchv1.Job {
		return batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID(name), Labels: map[string]string{"persia_job": name, "app.kubernetes.io/name": "completion"}},
			Status:     batchv1.JobStatus{Conditions: end},
		}
	}
	later := func(job batchv1.Job) batchv1.Job {
		job.CreationTimestamp = metav1.NewTime(now)
		return job
	}
	const ready = "1 of 2 pods are ready, containers were restarted 2 times"
	for name, c := range map[string]struct {
		jobs  []batchv1.Job
		state string
		ended bool
		err   string
	}{
		"complete":              {[]batchv1.Job{job("a", complete)}, "complete", true, ""},
		"one of two":            {[]batchv1.Job{job("runs"), job("a", complete)}, "complete; " + ready, false, ""},
		"not yet":               {[]batchv1.Job{job("runs", batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionFalse})}, ready, false, ""},
		"failed":                {[]batchv1.Job{job("a", complete), job("fails", failed)}, "complete; failed: BackoffLimitExceeded: 5 attempts", true, "the training job fails has failed: BackoffLimitExceeded: 5 attempts"},
		"failed, and why":       {[]batchv1.Job{job("says why", failed)}, "failed: 5 attempts failed", true, "the training job says why has failed: 5 attempts failed"},
		"failed, as answered":   {[]batchv1.Job{job("answers", failed)}, "failed: 5 attempts failed", true, "the training job answers has failed: 5 attempts failed"},
		"complete, and moved":   {[]batchv1.Job{job("moved", complete)}, "complete", true, ""},
		"failed by itself":      {[]batchv1.Job{job("breaks", failed)}, "failed: BackoffLimitExceeded: 5 attempts", true, "the training job breaks has failed: BackoffLimitExceeded: 5 attempts"},
		"failed, one runs yet":  {[]batchv1.Job{job("runs"), job("fails", failed)}, "failed: BackoffLimitExceeded: 5 attempts; " + ready, false, ""},
		"one, as it is and was": {[]batchv1.Job{later(job("runs")), job("runs", failed)}, ready, false, ""},
		"none":                  {nil, "", true, None},
	} {
		t.Run(name, func(t *testing.T) {
			all := Of(c.jobs, pods, nil)
			var states []string
			for _, training := range all {
				states = append(states, training.State)
			}
			assert.Equal(t, c.state, strings.Join(states, "; "))
			ended, err := Ended(all)
			assert.Equal(t, c.ended, ended)
			if c.err == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, c.err)
			}
		})
	}
}
