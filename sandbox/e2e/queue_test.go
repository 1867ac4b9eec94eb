package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"persia/internal/testkit"
	"persia/sandbox/toolchain"
)

// TestQueue: of two jobs that each need all nodes, one runs whole and the other has no pod, with
// the controllers of JobSet and Kueue. A third job waits in no queue.
func TestQueue(t *testing.T) {
	t.Parallel()
	compile(t, toolchain.OfJobSets, toolchain.OfQueues)
	s := newStack(t, `
queue: {teams: [{name: ranking}, {name: ads}], priorities: [{name: urgent, value: 100}]}
nodePools:
  - {name: gpu, machineType: g2-standard-8, nodes: 2, gpu: {type: nvidia-l4, count: 1}}
  - {name: servers, machineType: n2-standard-8, nodes: 2}
  - {name: alone, machineType: n2-standard-8, nodes: 1}
jobs:
  - name: first
    engine: jobset
    queue: ranking
    nnWorker: &nn {nodePool: gpu, replicas: 2, resources: {limits: {cpu: "4", memory: 8Gi, nvidia.com/gpu: "1"}}}
    embeddingParameterServer: &ps {nodePool: servers, replicas: 4, resources: {limits: {cpu: "3", memory: 8Gi}}}
  - {name: second, engine: jobset, queue: ranking, suspend: true, nnWorker: *nn, embeddingParameterServer: *ps}
  - name: alone
    engine: jobset
    nnWorker: {nodePool: alone, replicas: 2}
    dataloader: {nodePool: alone}
    embeddingWorker: {nodePool: alone}
    embeddingParameterServer: {nodePool: alone, replicas: 3}`)
	const replicas = 8
	s.up()
	s.awaitRunning("first", replicas)
	s.awaitRunning("alone", 7)
	s.assertNamesOfReplicas("alone")

	s.run(t, []step{{name: "a second job waits", edit: `jobs: [{name: second, suspend: false}]`, then: func() {
		s.await(func() bool { return strings.Contains(s.waitsFor("second"), "insufficient unused quota") }, "Kueue says why the second job waits")
		assert.Zero(s.t, s.podsOfSet("second"), "a job that waits has no pod")
		assert.Equal(s.t, replicas, s.running("first"))
		assert.Empty(s.t, s.up(), "second up")
		assert.Empty(s.t, s.refresh(), "refresh")
	}}})
	waited := field(t, s.workloadOf("second"), "metadata", "uid")
	s.run(t, []step{
		{name: "an edit costs a waiting job its place", edit: `jobs: [{name: second, env: [{name: BATCH_SIZE, value: "512"}]}]`,
			want: map[string]int{"replace": 2}, then: func() { // the JobSet and the completion
				s.await(func() bool {
					return s.waitsFor("second") != "" && field(s.t, s.workloadOf("second"), "metadata", "uid") != waited
				}, "the second job waits again")
				assert.Zero(s.t, s.podsOfSet("second"))
				assert.Equal(s.t, replicas, s.running("first"))
			}},
		{name: "a suspended job makes room", edit: `jobs: [{name: first, suspend: true}]`, want: map[string]int{"delete": 1}, then: func() {
			s.awaitRunning("second", replicas)
			assert.Zero(s.t, s.podsOfSet("first"))
		}},
		{name: "a running job moves to another team", edit: `jobs: [{name: second, queue: ads}]`, want: map[string]int{"replace": 1}, then: func() {
			s.awaitRunning("second", replicas)
			s.await(func() bool { return field(s.t, s.workloadOf("second"), "spec", "queueName") == "ads" }, "it runs for the other team")
		}},
	})
	before := uids(s.rolePods("second"))
	s.run(t, []step{
		{name: "a running job becomes more urgent", edit: `jobs: [{name: second, priority: urgent}]`, want: map[string]int{"update": 1}, then: func() {
			s.await(func() bool { return field(s.t, s.workloadOf("second"), "spec", "priority") == int64(100) }, "Kueue takes the priority")
			assert.Equal(s.t, before, uids(s.rolePods("second")), "the pods go on")
		}},
		{name: "a priority stops a running job", edit: `jobs: [{name: first, suspend: false, priority: urgent}, {name: second, priority: null}]`,
			want: map[string]int{"create": 1, "update": 1}, then: func() {
				s.awaitRunning("first", replicas)
				s.await(func() bool { return s.podsOfSet("second") == 0 }, "the other job has no pod")
				assert.Empty(s.t, s.up(), "up after a preemption")
			}},
	})
	s.subtest(t, "a complete job makes room", func() {
		s.complete("first")
		s.awaitRunning("second", replicas)
	})
	s.run(t, []step{
		{name: "a job in no queue is suspended", edit: `jobs: [{name: alone, suspend: true}]`, want: map[string]int{"update": 1}, then: func() {
			s.await(func() bool { return s.podsOfSet("alone") == 0 }, "a suspended job has no pod")
		}},
		{name: "it goes on", edit: `jobs: [{name: alone, suspend: false}]`, want: map[string]int{"update": 1}, then: func() { s.awaitRunning("alone", 7) }},
		{name: "it changes", edit: `jobs: [{name: alone, nnWorker: {replicas: 3}}]`, then: func() { s.awaitRunning("alone", 8) }},
	})
	s.subtest(t, "it is complete", func() {
		s.complete("alone")
		assert.Empty(s.t, s.up(), "up of a complete job")
	})
	s.assertAllowed("kueue-system:kueue", "create workloads", "patch jobsets", "update clusterqueues")
	s.assertAllowed("jobset-system:jobset-controller", "create jobs", "update secrets", "update mutatingwebhookconfigurations")
	s.destroy()
}

// running counts the replicas of a JobSet that run and are ready.
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

func (c cluster) awaitRunning(job string, replicas int) {
	c.t.Helper()
	c.await(func() bool { return c.running(job) == replicas }, "all replicas of "+job+" run")
}

// podsOfSet counts the pods of a JobSet.
func (c cluster) podsOfSet(job string) int {
	c.t.Helper()
	return len(c.pods("persia", "jobset.sigs.k8s.io/jobset-name="+job))
}

// assertNamesOfReplicas checks that two nn-workers have the names by which others know them.
func (c cluster) assertNamesOfReplicas(job string) {
	c.t.Helper()
	var hosts []string
	for _, pod := range c.podsOfRole(job, "nn-worker") {
		hosts = append(hosts, pod.Spec.Hostname+"."+pod.Spec.Subdomain)
		assert.Equal(c.t, pod.Spec.Hostname, job+"-nn-worker-0-"+pod.Labels["batch.kubernetes.io/job-completion-index"])
	}
	assert.ElementsMatch(c.t, []string{job + "-nn-worker-0-0." + job, job + "-nn-worker-0-1." + job}, hosts)
	service := testkit.Must(c.CoreV1().Services("persia").Get(c.t.Context(), job, metav1.GetOptions{}))(c.t)
	assert.True(c.t, service.Spec.PublishNotReadyAddresses, "replicas look for each other before they are ready")
}

// complete ends the nn-workers as launch.py does, and checks that all others end then, and no sooner: the
// dataloaders, too, as if they were substitutes that have not heard of the end.
func (c cluster) complete(job string) {
	c.t.Helper()
	servers := func() int {
		return len(c.pods("persia", "persia_job="+job+",app.kubernetes.io/name in (embedding-ps,embedding-worker)"))
	}
	pods := c.podsOfRole(job, "nn-worker")
	slices.Reverse(pods)
	for _, pod := range pods {
		assert.NotZero(c.t, servers(), "servers run as long as nn-worker 0 does")
		_, err := c.CoreV1().Pods("persia").Patch(c.t.Context(), pod.Name, types.MergePatchType,
			[]byte(`{"status": {"phase": "Succeeded"}}`), metav1.PatchOptions{}, "status")
		require.NoError(c.t, err)
	}
	c.await(func() bool { return c.running(job) == 0 && servers() == 0 }, "all others end with the job")
	c.await(func() bool {
		return slices.ContainsFunc(c.list("jobset.x-k8s.io/v1alpha2/jobsets"), func(set unstructured.Unstructured) bool {
			return set.GetName() == job && meta.IsStatusConditionTrue(conditionsOf(c.t, set), "Completed")
		})
	}, "the JobSet is complete")
}

// waitsFor returns why Kueue does not admit a job, or "".
func (c cluster) waitsFor(job string) string {
	c.t.Helper()
	condition := meta.FindStatusCondition(conditionsOf(c.t, c.workloadOf(job)), "QuotaReserved")
	if condition != nil && condition.Status == metav1.ConditionFalse {
		return condition.Message
	}
	return ""
}

// workloadOf returns Kueue's record of a job, or an empty object if there is none yet.
func (c cluster) workloadOf(job string) unstructured.Unstructured {
	c.t.Helper()
	for _, workload := range c.list("kueue.x-k8s.io/v1beta2/workloads") {
		if slices.ContainsFunc(workload.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Name == job }) {
			return workload
		}
	}
	return unstructured.Unstructured{Object: object{}}
}

// field returns a value of an object, or nil.
func field(t testing.TB, of unstructured.Unstructured, path ...string) any {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(of.Object, path...)
	require.NoError(t, err)
	return value
}

func conditionsOf(t testing.TB, object unstructured.Unstructured) []metav1.Condition {
	t.Helper()
	var has struct {
		Status struct{ Conditions []metav1.Condition }
	}
	require.NoError(t, json.Unmarshal(testkit.Must(object.MarshalJSON())(t), &has))
	return has.Status.Conditions
}
