package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"persia/sandbox/toolchain"
)

var jobSets = schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}

// TestJobSet: the life of a job of the engine jobset, with JobSet's own controller.
func TestJobSet(t *testing.T) {
	nightly(t)
	t.Parallel()
	compile(t, toolchain.OfJobSets)
	project := t.TempDir()
	replicas := 2
	write := func(changes object) {
		stackText(t, project, madeUp{jobs: []object{job("train", object{
			"engine":                   "jobset",
			"nnWorker":                 role("rest", replicas, "100m", "128Mi"),
			"embeddingParameterServer": role("rest", 3, "100m", "128Mi"),
		})}})
		rewriteStack(t, project, "madeup", func(configuration object) {
			pool := configuration["persia:nodePools"].([]any)[0].(object)
			pool["nodes"], pool["spareNodes"] = 2, 1
			train := configuration["persia:jobs"].([]any)[0].(object)
			for field, value := range changes {
				train[field] = value
			}
		})
	}
	write(nil)
	s := newSandboxOf(t, project, t.TempDir(), "madeup")
	require.NoError(t, s.Apply(t.Context()))
	c := newCluster(t, s)
	all := func() bool { return c.running("train") == replicas+5 }
	c.await(all, "all replicas run")
	c.assertJobSetPods(replicas)
	assert.Empty(t, upChanges(t, s), "second up")

	write(object{"suspend": true})
	assert.Equal(t, map[string]int{"update": 1}, upChanges(t, s), "the JobSet")
	c.await(func() bool { return len(c.pods("persia", "jobset.sigs.k8s.io/jobset-name")) == 0 }, "a suspended job has no pod")
	write(nil)
	assert.Equal(t, map[string]int{"update": 1}, upChanges(t, s), "the JobSet")
	c.await(all, "all replicas run again")

	replicas = 3
	write(nil)
	require.NoError(t, s.Apply(t.Context()))
	c.await(all, "a job that was changed runs")

	t.Run("complete", func(t *testing.T) { c.assertCompletes(t) })
	assert.Empty(t, upChanges(t, s), "up of a complete job")
	c.assertAllowed("system:serviceaccount:jobset-system:jobset-controller", "create jobs", "update secrets", "update mutatingwebhookconfigurations")

	require.NoError(t, s.Destroy(t.Context()))
	c.assertEmpty()
	definitions, err := c.extensions.ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, names(definitions.Items), "definitions")
	mutating, err := c.AdmissionregistrationV1().MutatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, names(mutating.Items), "webhooks")
}

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

// assertJobSetPods checks that the replicas have the names by which others know them.
func (c cluster) assertJobSetPods(nnWorkers int) {
	c.t.Helper()
	var hosts []string
	for _, pod := range c.podsOfRole("train", "nn-worker") {
		hosts = append(hosts, pod.Spec.Hostname+"."+pod.Spec.Subdomain)
		assert.True(c.t, strings.HasPrefix(pod.Name, pod.Spec.Hostname+"-"), pod.Name)
		assert.Equal(c.t, pod.Spec.Hostname, fmt.Sprintf("train-nn-worker-0-%s", pod.Labels["batch.kubernetes.io/job-completion-index"]))
	}
	slices.Sort(hosts)
	var want []string
	for i := range nnWorkers {
		want = append(want, fmt.Sprintf("train-nn-worker-0-%d.train", i))
	}
	assert.Equal(c.t, want, hosts)
	service, err := c.CoreV1().Services("persia").Get(c.t.Context(), "train", metav1.GetOptions{})
	require.NoError(c.t, err)
	assert.True(c.t, service.Spec.PublishNotReadyAddresses, "replicas look for each other before they are ready")
}

// assertCompletes ends the nn-workers as launch.py does, and checks that all others end then, and no
// sooner: the dataloaders, too, as if they were substitutes that have not heard of the end.
func (c cluster) assertCompletes(t *testing.T) {
	nnWorkers := c.podsOfRole("train", "nn-worker")
	c.succeedPods(nnWorkers[1:])
	assert.NotEmpty(t, c.servers("train"), "servers run as long as nn-worker 0 does")
	c.succeedPods(nnWorkers[:1])
	c.await(func() bool { return c.running("train") == 0 && len(c.servers("train")) == 0 }, "all others end with the job")
	config, err := c.s.Cluster().RESTConfig()
	require.NoError(t, err)
	set, err := dynamic.NewForConfigOrDie(config).Resource(jobSets).Namespace("persia").Get(t.Context(), "train", metav1.GetOptions{})
	require.NoError(t, err)
	assert.True(t, meta.IsStatusConditionTrue(conditionsOf(t, *set), "Completed"))
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
