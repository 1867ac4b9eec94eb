package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// workload is Kueue's record of a job in a queue: the fields of kueue.x-k8s.io/v1beta2 that
// [Read] needs.
type workload struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		QueueName string `json:"queueName"`
		Priority  int32  `json:"priority"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

var workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}

// queued returns why jobs of a namespace wait in queues, by the name of the job. There are none in
// a cluster without Kueue.
func queued(ctx context.Context, client dynamic.Interface, namespace string) (map[string]Wait, error) {
	list, err := client.Resource(workloads).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the queues of %s: %w", namespace, err)
	}
	queues := map[string][]workload{}
	for _, item := range list.Items {
		var w workload
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &w); err != nil {
			return nil, fmt.Errorf("read the queues of %s: %w", namespace, err)
		}
		if w.waits() {
			queues[w.Spec.QueueName] = append(queues[w.Spec.QueueName], w)
		}
	}
	waits := map[string]Wait{}
	for queue, all := range queues {
		// Kueue's order: the highest priority first, then the oldest.
		slices.SortFunc(all, func(a, b workload) int {
			return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
		})
		for i, w := range all {
			waits[w.job()] = Wait{Pod: w.job(), Why: Why{
				Cause: "queue",
				Says:  fmt.Sprintf("place %d of %d in the queue %s: %s", i+1, len(all), queue, w.reason()),
				Next:  fmt.Sprintf("kubectl -n %s describe workload %s", namespace, w.Name),
			}}
		}
	}
	return waits, nil
}

// waits reports whether Kueue has not admitted the job.
func (w workload) waits() bool {
	return !meta.IsStatusConditionTrue(w.Status.Conditions, "Admitted") && !meta.IsStatusConditionTrue(w.Status.Conditions, "Finished")
}

// job is the name of the JobSet.
func (w workload) job() string {
	for _, owner := range w.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return owner.Name
		}
	}
	return w.Name
}

func (w workload) reason() string {
	for _, name := range []string{"QuotaReserved", "Evicted"} {
		if condition := meta.FindStatusCondition(w.Status.Conditions, name); condition != nil && condition.Message != "" {
			return condition.Message
		}
	}
	return "Kueue has not looked at it yet"
}
