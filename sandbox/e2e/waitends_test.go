package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"persia/sandbox/background"
)

// TestWaitsEnd: no test waits for what can no longer come.
func TestWaitsEnd(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Namespace: "persia", Name: "one"}
	owned := meta
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "set", Controller: new(true)}}
	failed := corev1.PodStatus{Phase: corev1.PodFailed, Message: "no memory"}
	ended := func(how batchv1.JobConditionType, status corev1.ConditionStatus) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: meta, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: how, Status: status}}}}
	}
	for name, test := range map[string]struct {
		object runtime.Object
		why    string
	}{
		"a Job has failed":              {ended(batchv1.JobFailed, corev1.ConditionTrue), "the Job one has failed"},
		"a pod of its own has failed":   {&corev1.Pod{ObjectMeta: meta, Status: failed}, "the pod one has failed: no memory"},
		"a Job is complete":             {ended(batchv1.JobComplete, corev1.ConditionTrue), ""},
		"a Job no longer fails":         {ended(batchv1.JobFailed, corev1.ConditionFalse), ""},
		"a pod that something replaces": {&corev1.Pod{ObjectMeta: owned, Status: failed}, ""},
		"a pod that runs":               {&corev1.Pod{ObjectMeta: meta, Status: corev1.PodStatus{Phase: corev1.PodRunning}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster{t: t, Interface: fake.NewSimpleClientset(test.object)}
			tries := 0
			why, holds := eventuallyUnless(t, time.Hour, c.lost, func() bool {
				tries++
				return test.why == "" && tries > 15
			})
			assert.Equal(t, test.why == "", holds)
			if !holds {
				assert.Equal(t, test.why, why)
			}
		})
	}
}

// TestWaitsEndWithPrograms: a test does not wait on when a program that it needs has ended.
func TestWaitsEndWithPrograms(t *testing.T) {
	t.Parallel()
	dir, end := t.TempDir(), filepath.Join(t.TempDir(), "end")
	require.NoError(t, background.Start(t.Context(), dir, "/bin/sh", "-c", "until [ -e "+end+" ]; do sleep 0.1; done"))
	t.Cleanup(func() { assert.NoError(t, background.Stop(context.Background(), dir)) })
	needs.add(t, func() string {
		if hasEnded(dir) {
			return "the program has ended"
		}
		return ""
	})
	never := func() bool { return false }
	t.Run("it runs", func(t *testing.T) {
		why, holds := eventuallyUnless(t, 3*time.Second, nothingLost, never)
		assert.False(t, holds)
		assert.Equal(t, "it did not come in 3s", why)
	})
	t.Run("it ends", func(t *testing.T) {
		require.NoError(t, os.WriteFile(end, nil, 0o600))
		why, holds := eventuallyUnless(t, time.Hour, nothingLost, never)
		assert.False(t, holds)
		assert.Equal(t, "the program has ended", why)
	})
}

// TestWaitsLookTwice: a program that is replaced at this moment does not end a wait.
func TestWaitsLookTwice(t *testing.T) {
	t.Parallel()
	looks := 0
	_, holds := eventuallyUnless(t, time.Hour, func() string {
		looks++
		return map[int]string{2: "it has ended"}[looks]
	}, func() bool { return looks == 4 })
	assert.True(t, holds)
}
