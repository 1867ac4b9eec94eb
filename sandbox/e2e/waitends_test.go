package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
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
			why, holds := eventuallyUnless(time.Hour, c.lost, func() bool {
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
