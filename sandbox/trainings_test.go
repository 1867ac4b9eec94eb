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

	"persia/cmd/persia/status"
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
		"never":              {failing: func(time.Duration) bool { return false }, resource: "jobs"},
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

func TestLastReport(t *testing.T) {
	const steps = "launch.py: attempt 1: running\n2026-11-23 10:00:01 nn_worker INFO step 50 of 300, loss 0.6931\nstep 100 of 300, loss 0.41, 20 rows per second\n"
	for log, want := range map[string]string{
		"launch.py: attempt 1: running\n":              "",
		steps + "RESULT not JSON\n":                    "step 100 of 300, loss 0.41",
		steps + "RESULT {\"auc\": 0.865}\nbye\n":       `RESULT {"auc": 0.865}`,
		"RESULT {\"auc\": 0.865}\n" + steps + "what\n": "step 100 of 300, loss 0.41",
	} {
		assert.Equal(t, want, lastReport([]byte(log)), log)
	}
}
