package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// inQueue returns a Workload as Kueue v0.15.2 writes it.
func inQueue(job, queue string, priority int64, age time.Duration, conditions ...any) runtime.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
		"metadata": map[string]any{
			"namespace": "persia", "name": "jobset-" + job + "-4a113",
			"creationTimestamp": now.Add(-age).Format(time.RFC3339),
			"ownerReferences":   []any{map[string]any{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": job, "controller": true}},
		},
		"spec":   map[string]any{"queueName": queue, "priority": priority},
		"status": map[string]any{"conditions": conditions},
	}}
}

// evicted returns the condition of a job that lost its nodes.
func evicted(reason, message string, ago time.Duration) any {
	return map[string]any{"type": "Evicted", "status": "True", "reason": reason, "message": message, "lastTransitionTime": now.Add(-ago).Format(time.RFC3339)}
}

// changed returns a Workload with a value in another field.
func changed(w runtime.Object, value any, path ...string) runtime.Object {
	if err := unstructured.SetNestedField(w.(*unstructured.Unstructured).Object, value, path...); err != nil {
		panic(err)
	}
	return w
}

func condition(kind, status, message string) any {
	return map[string]any{"type": kind, "status": status, "message": message}
}

func inCluster(objects ...runtime.Object) dynamic.Interface {
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{workloads: "WorkloadList", requests: "ProvisioningRequestList"}, objects...)
}

func TestQueued(t *testing.T) {
	full := condition("QuotaReserved", "False", "insufficient unused quota")
	admitted := condition("Admitted", "True", "The workload is admitted")
	for name, c := range map[string]struct {
		workloads []runtime.Object
		// says has the reason of each waiting job.
		says map[string]string
	}{
		"no queues": {nil, map[string]string{}},
		"one runs, two wait": {
			[]runtime.Object{inQueue("a", "ads", 0, 3*time.Hour, admitted), inQueue("c", "ads", 0, time.Hour, full), inQueue("b", "ads", 0, 2*time.Hour, full)},
			map[string]string{
				"b": "place 1 of 2 in the queue ads: insufficient unused quota",
				"c": "place 2 of 2 in the queue ads: insufficient unused quota",
			},
		},
		"a priority goes first": {
			[]runtime.Object{inQueue("old", "ads", 0, time.Hour, full), inQueue("urgent", "ads", 100, time.Minute, full)},
			map[string]string{
				"urgent": "place 1 of 2 in the queue ads: insufficient unused quota",
				"old":    "place 2 of 2 in the queue ads: insufficient unused quota",
			},
		},
		"each team has a queue": {
			[]runtime.Object{inQueue("a", "ads", 0, time.Hour, full), inQueue("b", "ranking", 0, time.Minute, full)},
			map[string]string{
				"a": "place 1 of 1 in the queue ads: insufficient unused quota",
				"b": "place 1 of 1 in the queue ranking: insufficient unused quota",
			},
		},
		"evicted": {
			[]runtime.Object{inQueue("a", "ads", 0, time.Hour, condition("Evicted", "True", "Exceeded the PodsReady timeout"))},
			map[string]string{"a": "place 1 of 1 in the queue ads: Exceeded the PodsReady timeout"},
		},
		"evicted long ago, behind a job that came later": {
			[]runtime.Object{
				inQueue("a", "ads", 0, 3*time.Hour, evicted("PodsReadyTimeout", "Exceeded the PodsReady timeout", time.Hour)),
				inQueue("b", "ads", 0, 2*time.Hour, full),
			},
			map[string]string{
				"b": "place 1 of 2 in the queue ads: insufficient unused quota",
				"a": "place 2 of 2 in the queue ads: Exceeded the PodsReady timeout",
			},
		},
		"stopped for a more urgent job, which keeps its age": {
			[]runtime.Object{
				inQueue("a", "ads", 0, 3*time.Hour, evicted("Preempted", "Preempted to accommodate a workload", time.Hour)),
				inQueue("b", "ads", 0, 2*time.Hour, full),
			},
			map[string]string{
				"a": "place 1 of 2 in the queue ads: Preempted to accommodate a workload",
				"b": "place 2 of 2 in the queue ads: insufficient unused quota",
			},
		},
		"backs off": {
			[]runtime.Object{
				changed(inQueue("a", "ads", 0, 3*time.Hour, evicted("PodsReadyTimeout", "Exceeded the PodsReady timeout", time.Minute)),
					map[string]any{"count": int64(2), "requeueAt": now.Add(time.Minute).Format(time.RFC3339)}, "status", "requeueState"),
				inQueue("b", "ads", 0, 2*time.Hour, full),
			},
			map[string]string{
				"a": "out of the queue ads until 2026-11-24T12:01:00Z, after 2 starts without all pods: Exceeded the PodsReady timeout",
				"b": "place 1 of 1 in the queue ads: insufficient unused quota",
			},
		},
		"inactive": {
			[]runtime.Object{
				changed(inQueue("a", "ads", 0, time.Hour, evicted("Deactivated", "The workload is deactivated", time.Minute)), false, "spec", "active"),
			},
			map[string]string{"a": "out of the queue ads until it is active: The workload is deactivated"},
		},
		"complete": {[]runtime.Object{inQueue("a", "ads", 0, time.Hour, condition("Finished", "True", ""))}, map[string]string{}},
		"new":      {[]runtime.Object{inQueue("a", "ads", 0, 0)}, map[string]string{"a": "place 1 of 1 in the queue ads: Kueue has not looked at it yet"}},
	} {
		t.Run(name, func(t *testing.T) {
			waits, err := queued(t.Context(), inCluster(c.workloads...), "persia", now)
			require.NoError(t, err)
			says := map[string]string{}
			for job, wait := range waits {
				says[job] = wait.Says
				verb := "describe"
				if name == "inactive" {
					verb = "patch"
				}
				assert.Contains(t, wait.Next, "kubectl -n persia "+verb+" workload jobset-"+job+"-4a113")
			}
			assert.Equal(t, c.says, says)
		})
	}
}
