package e2e

import (
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// running counts the replicas of a job that run and are ready.
func (c cluster) running(job string) int {
	c.t.Helper()
	count := 0
	for _, pod := range c.pods("persia", "persia_job="+job+",jobset.sigs.k8s.io/jobset-name="+job) {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && !readySince(pod).IsZero() {
			count++
		}
	}
	return count
}

// succeedRole ends the pods of a role as its finished command does, replica 0 last: the job ends with
// nn-worker 0.
func (c cluster) succeedRole(job, role string) {
	c.t.Helper()
	pods := c.podsOfRole(job, role)
	slices.Reverse(pods)
	c.succeedPods(pods)
}

func (c cluster) succeedPods(pods []corev1.Pod) {
	c.t.Helper()
	for _, pod := range pods {
		_, err := c.CoreV1().Pods("persia").Patch(c.t.Context(), pod.Name, types.MergePatchType,
			[]byte(`{"status": {"phase": "Succeeded"}}`), metav1.PatchOptions{}, "status")
		require.NoError(c.t, err)
	}
}

// servers returns the pods that run until a job ends.
func (c cluster) servers(job string) []corev1.Pod {
	c.t.Helper()
	return c.pods("persia", "persia_job="+job+",app.kubernetes.io/name in (embedding-ps,embedding-worker)")
}

// assertAllowed checks that a service account has asked for some things, and was refused
// nothing.
func (c cluster) assertAllowed(user string, requests ...string) {
	c.t.Helper()
	asked := map[string]int{}
	for _, event := range eventsOf(c.t, c.s, user) {
		asked[event.Verb+" "+event.ObjectRef.Resource]++
		assert.NotEqual(c.t, 403, event.ResponseStatus.Code, "%s %s was forbidden", event.Verb, event.RequestURI)
	}
	for _, request := range requests {
		assert.Positive(c.t, asked[request], "%s among %v", request, asked)
	}
}
