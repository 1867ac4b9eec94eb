package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"persia/sandbox/toolchain"
)

var workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}

// buildKueue compiles JobSet's controller and Kueue, as the command does for stacks with queues.
func buildKueue(t testing.TB) {
	t.Helper()
	buildJobSet(t)
	_, err := toolchain.BuildKueue(t.Context(), filepath.Join(repository, "sandbox", "toolchain"), filepath.Dir(tools.Kwok), t.Output())
	require.NoError(t, err)
}

// queuedJob returns a job that needs all nodes of the pools gpu and servers.
func queuedJob(name string, fields object) object {
	job := job(name, object{
		"engine":                   "jobset",
		"queue":                    "ranking",
		"nnWorker":                 gpuRole("gpu", 2, "4", "8Gi", 1),
		"embeddingParameterServer": role("servers", 4, "3", "8Gi"),
	})
	maps.Copy(job, fields)
	return job
}

// queuePools hold one of [queuedJob].
var queuePools = []object{
	{"name": "gpu", "machineType": "g2-standard-8", "nodes": 2, "gpu": object{"type": "nvidia-l4", "count": 1}},
	{"name": "servers", "machineType": "n2-standard-8", "nodes": 2},
}

// TestQueue: of two jobs that each need all nodes, one runs whole and the other has no pod, with
// the controllers of JobSet and Kueue.
func TestQueue(t *testing.T) {
	t.Parallel()
	buildKueue(t)
	project := t.TempDir()
	write := func(first, second object) {
		stackText(t, project, madeUp{pools: queuePools, jobs: []object{queuedJob("first", first), queuedJob("second", second)}})
		rewriteStack(t, project, "madeup", func(configuration object) {
			configuration["persia:queue"] = object{
				"teams":      []object{{"name": "ranking"}, {"name": "ads"}},
				"priorities": []object{{"name": "urgent", "value": 100}},
			}
		})
	}
	write(nil, object{"suspend": true})
	s := newSandboxOf(t, project, t.TempDir(), "madeup")
	require.NoError(t, s.Apply(t.Context()))
	c := newCluster(t, s)
	const replicas = 8
	c.await(func() bool { return c.running("first") == replicas }, "the first job runs")

	write(nil, nil)
	require.NoError(t, s.Apply(t.Context()))
	c.await(func() bool { return strings.Contains(c.waitsFor("second"), "insufficient unused quota") }, "Kueue says why the second job waits")
	assert.Zero(t, c.podsOfSet("second"), "a job that waits has no pod")
	assert.Equal(t, replicas, c.running("first"))
	assert.Empty(t, upChanges(t, s), "second up")
	assert.Empty(t, refreshChanges(t, s), "refresh")
	assert.Empty(t, upChanges(t, s), "up after a refresh")

	t.Run("a suspended job makes room", func(t *testing.T) {
		write(object{"suspend": true}, nil)
		assert.Equal(t, map[string]int{"delete": 1}, upChanges(t, s), "the JobSet")
		c.await(func() bool { return c.running("second") == replicas }, "the second job runs")
		assert.Zero(t, c.podsOfSet("first"))
	})
	t.Run("a priority stops a running job", func(t *testing.T) {
		write(object{"priority": "urgent"}, nil)
		assert.Equal(t, map[string]int{"create": 1}, upChanges(t, s), "the JobSet")
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
	definitions, err := c.extensions.ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, names(definitions.Items), "definitions")
}

// TestStatefulSetsDeadlock is the control of TestQueue: the StatefulSets of two jobs that each need
// all nodes share them, and neither job is ever whole.
func TestStatefulSetsDeadlock(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	stackText(t, project, madeUp{pools: queuePools, jobs: []object{queuedJob("first", object{"engine": "statefulset", "queue": ""})}})
	s := newSandboxOf(t, project, t.TempDir(), "madeup")
	require.NoError(t, s.Apply(t.Context()))
	c := newCluster(t, s)
	sets := c.AppsV1().StatefulSets("persia")
	first, err := sets.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	replicas := map[string]int32{}
	for _, set := range first.Items {
		replicas[set.Name] = *set.Spec.Replicas
		c.scale(set.Name, 0)
	}
	c.await(func() bool { return len(c.replicas("first")) == 0 }, "the first job has no pods")
	// Both jobs start at the same time, one replica of each at a time.
	for _, set := range first.Items {
		second := secondJob(set)
		_, err := sets.Create(t.Context(), second, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for i := int32(1); i <= 4; i++ {
		for _, set := range first.Items {
			c.scale(set.Name, min(i, replicas[set.Name]))
			c.scale("second-"+set.Name, min(i, replicas[set.Name]))
		}
	}
	settled := func() bool {
		pods := append(c.replicas("first"), c.replicas("second")...)
		for _, pod := range pods {
			if readySince(pod).IsZero() && !unschedulable(pod) {
				return false
			}
		}
		return len(pods) == 16
	}
	c.await(settled, "each pod runs or has no room")
	for _, job := range []string{"first", "second"} {
		ready := 0
		for _, pod := range c.replicas(job) {
			if !readySince(pod).IsZero() {
				ready++
			}
		}
		fmt.Fprintf(t.Output(), "%s has %d of 8 replicas\n", job, ready)
		assert.Positive(t, ready, job)
		assert.Less(t, ready, 8, job)
	}
}

// secondJob returns a StatefulSet of another job.
func secondJob(set appsv1.StatefulSet) *appsv1.StatefulSet {
	second := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "second-" + set.Name, Namespace: set.Namespace}, Spec: *set.Spec.DeepCopy()}
	none := int32(0)
	second.Spec.Replicas = &none
	second.Spec.Selector = second.Spec.Selector.DeepCopy()
	for _, labels := range []map[string]string{second.Spec.Selector.MatchLabels, second.Spec.Template.Labels} {
		if _, ok := labels["persia_job"]; ok {
			labels["persia_job"] = "second"
		}
		if _, ok := labels["app.kubernetes.io/instance"]; ok {
			labels["app.kubernetes.io/instance"] = "second"
		}
	}
	return second
}

// replicas are the pods of a job's roles.
func (c cluster) replicas(job string) []corev1.Pod {
	c.t.Helper()
	return c.pods("persia", "persia_job="+job+",app.kubernetes.io/name in (nn-worker,dataloader,embedding-worker,embedding-ps)")
}

// podsOfSet counts the pods of a JobSet.
func (c cluster) podsOfSet(job string) int {
	c.t.Helper()
	return len(c.pods("persia", "jobset.sigs.k8s.io/jobset-name="+job))
}

// waitsFor returns why Kueue does not admit a job, or "".
func (c cluster) waitsFor(job string) string {
	c.t.Helper()
	for _, workload := range c.workloads() {
		if !slices.ContainsFunc(workload.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Name == job }) {
			continue
		}
		condition := meta.FindStatusCondition(conditionsOf(c.t, workload), "QuotaReserved")
		if condition != nil && condition.Status == metav1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
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
