package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"persia/sandbox/toolchain"
)

var workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}

// twoJobs is a stack with two jobs that each need all nodes.
type twoJobs struct {
	t       *testing.T
	project string
	// stack is the name of the stack file, and jobs are alike but for their names.
	stack    string
	jobs     []object
	replicas int
}

func smallRivals(t *testing.T) twoJobs {
	t.Helper()
	project := t.TempDir()
	roles := object{
		"nnWorker":                 gpuRole("gpu", 2, "4", "8Gi", 1),
		"embeddingParameterServer": role("servers", 4, "3", "8Gi"),
	}
	jobs := []object{job("first", roles), job("second", roles)}
	stackText(t, project, madeUp{jobs: jobs, pools: []object{
		{"name": "gpu", "machineType": "g2-standard-8", "nodes": 2, "gpu": object{"type": "nvidia-l4", "count": 1}},
		{"name": "servers", "machineType": "n2-standard-8", "nodes": 2},
	}})
	return twoJobs{t: t, project: project, stack: "madeup", jobs: jobs, replicas: 8}
}

// write makes the first jobs, with more fields, the stack's.
func (r twoJobs) write(fields ...object) {
	r.t.Helper()
	rewriteStack(r.t, r.project, r.stack, func(configuration object) {
		var jobs []object
		for i, more := range fields {
			job := maps.Clone(r.jobs[i])
			maps.Copy(job, more)
			jobs = append(jobs, job)
		}
		configuration["persia:jobs"] = jobs
	})
}

// TestQueue: of two jobs that each need all nodes, one runs whole and the other has no pod, with
// the controllers of JobSet and Kueue.
func TestQueue(t *testing.T) {
	t.Parallel()
	compile(t, toolchain.OfJobSets, toolchain.OfQueues)
	r := smallRivals(t)
	rewriteStack(t, r.project, r.stack, func(configuration object) {
		configuration["persia:queue"] = object{
			"teams":      []object{{"name": "ranking"}, {"name": "ads"}},
			"priorities": []object{{"name": "urgent", "value": 100}},
		}
	})
	write := func(first, second object) {
		queued := object{"engine": "jobset", "queue": "ranking"}
		fields := []object{maps.Clone(queued), maps.Clone(queued)}
		maps.Copy(fields[0], first)
		maps.Copy(fields[1], second)
		r.write(fields...)
	}
	replicas := r.replicas
	write(nil, object{"suspend": true})
	s := newSandboxOf(t, r.project, t.TempDir(), r.stack)
	require.NoError(t, s.Apply(t.Context()))
	c := newCluster(t, s)
	c.await(func() bool { return c.running("first") == replicas }, "the first job runs")

	write(nil, nil)
	require.NoError(t, s.Apply(t.Context()))
	c.await(func() bool { return strings.Contains(c.waitsFor("second"), "insufficient unused quota") }, "Kueue says why the second job waits")
	assert.Zero(t, c.podsOfSet("second"), "a job that waits has no pod")
	assert.Equal(t, replicas, c.running("first"))
	again, err := s.Up(t.Context())
	require.NoError(t, err)
	assert.Empty(t, changes(t, again.Summary), "second up")
	queued, _ := again.Outputs["queuedJobs"].Value.(object)
	assert.Subset(t, queued["second"], object{"queue": "ranking", "priority": "default", "place": "go run ./cmd/persia status"})
	assert.Empty(t, refreshChanges(t, s), "refresh")
	assert.Empty(t, upChanges(t, s), "up after a refresh")

	t.Run("an edit costs a waiting job its place", func(t *testing.T) {
		uid := func() any { return field(t, c.workloadOf("second"), "metadata", "uid") }
		waited := uid()
		r.jobs[1]["env"] = []object{{"name": "BATCH_SIZE", "value": "512"}}
		write(nil, nil)
		assert.Equal(t, map[string]int{"replace": 2}, upChanges(t, s), "the JobSet and the completion")
		c.await(func() bool { return c.waitsFor("second") != "" && uid() != waited }, "the second job waits again")
		assert.Zero(t, c.podsOfSet("second"))
		assert.Equal(t, replicas, c.running("first"))
	})
	t.Run("a suspended job makes room", func(t *testing.T) {
		write(object{"suspend": true}, nil)
		assert.Equal(t, map[string]int{"delete": 1}, upChanges(t, s), "the JobSet")
		c.await(func() bool { return c.running("second") == replicas }, "the second job runs")
		assert.Zero(t, c.podsOfSet("first"))
	})
	t.Run("a running job moves to another team", func(t *testing.T) {
		write(object{"suspend": true}, object{"queue": "ads"})
		assert.Equal(t, map[string]int{"replace": 1}, upChanges(t, s), "the JobSet")
		c.await(func() bool { return c.running("second") == replicas }, "the second job runs")
		c.await(func() bool { return field(t, c.workloadOf("second"), "spec", "queueName") == "ads" }, "it runs for the other team")
	})
	t.Run("a running job becomes more urgent", func(t *testing.T) {
		before := uids(c.rolePods("second"))
		write(object{"suspend": true}, object{"queue": "ads", "priority": "urgent"})
		assert.Equal(t, map[string]int{"update": 1}, upChanges(t, s), "the JobSet")
		c.await(func() bool { return field(t, c.workloadOf("second"), "spec", "priority") == int64(100) }, "Kueue takes the priority")
		assert.Equal(t, before, uids(c.rolePods("second")), "the pods go on")
	})
	t.Run("a priority stops a running job", func(t *testing.T) {
		write(object{"priority": "urgent"}, object{"queue": "ads"})
		assert.Equal(t, map[string]int{"create": 1, "update": 1}, upChanges(t, s), "the JobSets")
		c.await(func() bool { return c.running("first") == replicas }, "the urgent job runs")
		c.await(func() bool { return c.podsOfSet("second") == 0 }, "the other job has no pod")
		assert.Empty(t, upChanges(t, s), "up after a preemption")
	})
	t.Run("a complete job makes room", func(t *testing.T) {
		for _, role := range []string{"dataloader", "nn-worker"} {
			c.succeedRole("first", role)
		}
		c.await(func() bool { return c.running("second") == replicas }, "the second job runs again")
		assert.Empty(t, c.servers("first"))
	})
	c.assertAllowed("system:serviceaccount:kueue-system:kueue", "create workloads", "patch jobsets", "update clusterqueues")

	require.NoError(t, s.Destroy(t.Context()))
	c.assertEmpty()
}

// podsOfSet counts the pods of a JobSet.
func (c cluster) podsOfSet(job string) int {
	c.t.Helper()
	return len(c.pods("persia", "jobset.sigs.k8s.io/jobset-name="+job))
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
	for _, workload := range c.workloads() {
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

// uids returns the identities of pods, in order.
func uids(pods []corev1.Pod) []string {
	var uids []string
	for _, pod := range pods {
		uids = append(uids, string(pod.UID))
	}
	slices.Sort(uids)
	return uids
}

func (c cluster) workloads() []unstructured.Unstructured {
	c.t.Helper()
	config, err := c.s.Cluster().RESTConfig()
	require.NoError(c.t, err)
	list, err := dynamic.NewForConfigOrDie(config).Resource(workloads).Namespace("persia").List(c.t.Context(), metav1.ListOptions{})
	require.NoError(c.t, err)
	return list.Items
}

func conditionsOf(t testing.TB, object unstructured.Unstructured) []metav1.Condition {
	t.Helper()
	var status struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	text, err := object.MarshalJSON()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &status))
	return status.Status.Conditions
}
