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

func condition(kind, status, message string) any {
	return map[string]any{"type": kind, "status": status, "message": message}
}

func inCluster(objects ...runtime.Object) dynamic.Interface {
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{workloads: "WorkloadList"}, objects...)
}

func TestQueued(t *testing.T) {
	full := condition("QuotaReserved", "False", "insufficient unused quota")
	admitted := condition("Admitted", "True", "The workload is admitted")
	for name, c := range map[string]struct {
		workloads []runtime.Object
		// says is what each waiting job waits for.
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
		"complete": {[]runtime.Object{inQueue("a", "ads", 0, time.Hour, condition("Finished", "True", ""))}, map[string]string{}},
		"new":      {[]runtime.Object{inQueue("a", "ads", 0, 0)}, map[string]string{"a": "place 1 of 1 in the queue ads: Kueue has not looked at it yet"}},
	} {
		t.Run(name, func(t *testing.T) {
			waits, err := queued(t.Context(), inCluster(c.workloads...), "persia")
			require.NoError(t, err)
			says := map[string]string{}
			for job, wait := range waits {
				says[job] = wait.Says
				assert.Equal(t, "kubectl -n persia describe workload jobset-"+job+"-4a113", wait.Next)
			}
			assert.Equal(t, c.says, says)
		})
	}
}
