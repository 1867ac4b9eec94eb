package sandbox

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"persia/internal/status"
)

// TestAwaitBearsFailures checks that awaitTrainings continues after a request fails.
func TestAwaitBearsFailures(t *testing.T) {
	complete := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", Labels: map[string]string{"persia_job": "a", "app.kubernetes.io/name": "completion"}},
		Status:     batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}},
	}
	refused := errors.New("connection refused")
	for name, c := range map[string]struct {
		// failing are the times, since the start, at which requests fail.
		failing  func(time.Duration) bool
		resource string
		// ended is when the training is complete.
		ended time.Duration
		want  error
		after time.Duration
	}{
		"once":               {failing: func(at time.Duration) bool { return at == 0 }, resource: "jobs", after: status.Poll},
		"once, of the pods":  {failing: func(at time.Duration) bool { return at == 0 }, resource: "pods", after: status.Poll},
		"for an hour":        {failing: func(at time.Duration) bool { return at < status.Patience }, resource: "jobs", after: status.Patience},
		"again and again":    {failing: func(at time.Duration) bool { return at%status.Patience != 0 }, resource: "jobs", ended: 3 * status.Patience, after: 3 * status.Patience},
		"for longer":         {failing: func(time.Duration) bool { return true }, resource: "jobs", want: refused, after: status.Patience + status.Poll},
		"for longer, at end": {failing: func(at time.Duration) bool { return at > status.Patience }, resource: "jobs", ended: 3 * status.Patience, want: refused, after: 2*status.Patience + status.Poll},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				client := fake.NewClientset(complete)
				client.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
					running := &batchv1.JobList{Items: []batchv1.Job{{ObjectMeta: complete.ObjectMeta}}}
					return time.Since(started) < c.ended, running, nil
				})
				client.PrependReactor("list", c.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					return c.failing(time.Since(started)), nil, refused
				})
				assert.ErrorIs(t, awaitTrainings(t.Context(), client, io.Discard), c.want)
				assert.Equal(t, c.after, time.Since(started))
			})
		})
	}
}

// TestAwaitIsInterrupted: also while the API server does not answer.
func TestAwaitIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	client := fake.NewClientset()
	client.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		cancel(interrupted)
		return true, nil, errors.New("connection refused")
	})
	assert.ErrorIs(t, awaitTrainings(ctx, client, io.Discard), interrupted)
}

// TestFirst: nn-worker 0 has another name with each engine.
func TestFirst(t *testing.T) {
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
		pod.CreationTimestamp = metav1.NewTime(time.Unix(int64(minute), 0))
		if goes {
			pod.DeletionTimestamp = &metav1.Time{}
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
		assert.Equal(t, c.want, first(status.Training{Job: "clicks", Pods: c.pods}), name)
	}
}
