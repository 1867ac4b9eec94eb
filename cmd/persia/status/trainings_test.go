package status

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestOf checks how jobs go on, and whether all have ended.
func TestOf(t *testing.T) {
	pod := func(job, role string, status corev1.PodStatus) corev1.Pod {
		controller := true
		return corev1.Pod{Status: status, ObjectMeta: metav1.ObjectMeta{
			Labels:          map[string]string{"persia_job": job, "app.kubernetes.io/name": role},
			OwnerReferences: []metav1.OwnerReference{{UID: types.UID(job), Controller: &controller}},
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

// TestCoordinator: nn-worker 0 has another name with each engine.
func TestCoordinator(t *testing.T) {
	pod := func(name, role, index string, labels ...string) corev1.Pod {
		all := map[string]string{"persia_job": "clicks"}
		if role != "" {
			all["app.kubernetes.io/name"] = role
		}
		for _, label := range labels {
			all[label] = index
		}
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}}
	}
	const ofSet, ofJob = "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index"
	created := func(pod corev1.Pod, minute int, goes bool) corev1.Pod {
		pod.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(minute) * time.Minute))
		if goes {
			pod.DeletionTimestamp = &metav1.Time{Time: now}
		}
		return pod
	}
	for name, c := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"no pod":      {},
		"StatefulSet": {[]corev1.Pod{pod("clicks-nn-worker-1", "nn-worker", "1", ofSet), pod("clicks-nn-worker-0", "nn-worker", "0", ofSet)}, "clicks-nn-worker-0"},
		"JobSet": {[]corev1.Pod{
			pod("clicks-dataloader-0-0-aaaaa", "dataloader", "0", ofJob),
			pod("clicks-nn-worker-0-1-bbbbb", "nn-worker", "1", ofJob),
			pod("clicks-nn-worker-0-0-ccccc", "nn-worker", "0", ofJob),
		}, "clicks-nn-worker-0-0-ccccc"},
		"a substitute, before and after the pods of lost nodes": {[]corev1.Pod{
			created(pod("clicks-nn-worker-0-0-gone", "nn-worker", "0", ofJob), 7, true),
			created(pod("clicks-nn-worker-0-0-new", "nn-worker", "0", ofJob), 5, false),
			created(pod("clicks-nn-worker-0-0-lost", "nn-worker", "0", ofJob), 9, true),
		}, "clicks-nn-worker-0-0-new"},
		"the newer one of two": {[]corev1.Pod{
			created(pod("clicks-nn-worker-0-0-new", "nn-worker", "0", ofJob), 5, false),
			created(pod("clicks-nn-worker-0-0-old", "nn-worker", "0", ofJob), 1, false),
		}, "clicks-nn-worker-0-0-new"},
		"PERSIA's operator": {[]corev1.Pod{pod("clicks-nn-worker-1", "", ""), pod("clicks-nn-worker-0", "", "")}, "clicks-nn-worker-0"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, coordinator("clicks", c.pods))
		})
	}
}
