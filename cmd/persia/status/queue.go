package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

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
		// Active is true unless a person or Kueue has taken the job out of its queue.
		Active *bool `json:"active"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
		// RequeueState is set after a start in which not all pods became ready.
		RequeueState struct {
			Count     int32        `json:"count"`
			RequeueAt *metav1.Time `json:"requeueAt"`
		} `json:"requeueState"`
	} `json:"status"`
}

var workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}

// queued returns why jobs of a namespace wait for Kueue at a time, by the name of the job. There are
// none in a cluster without Kueue.
func queued(ctx context.Context, client dynamic.Interface, namespace string, now time.Time) (map[string]Wait, error) {
	list, err := client.Resource(workloads).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the queues of %s: %w", namespace, err)
	}
	queues, waits := map[string][]workload{}, map[string]Wait{}
	for _, item := range list.Items {
		var w workload
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &w); err != nil {
			return nil, fmt.Errorf("read the queues of %s: %w", namespace, err)
		}
		queue := w.Spec.QueueName
		switch {
		case !w.waits():
		case w.Spec.Active != nil && !*w.Spec.Active:
			waits[w.job()] = w.wait(namespace, fmt.Sprintf("out of the queue %s until it is active: %s", queue, w.reason()), activate)
		case w.Status.RequeueState.RequeueAt != nil && w.Status.RequeueState.RequeueAt.After(now):
			waits[w.job()] = w.wait(namespace, fmt.Sprintf("out of the queue %s until %s, after %d starts without all pods: %s", queue,
				w.Status.RequeueState.RequeueAt.UTC().Format(time.RFC3339), w.Status.RequeueState.Count, w.reason()), describeWorkload)
		default:
			queues[queue] = append(queues[queue], w)
		}
	}
	for queue, all := range queues {
		// Kueue's order: the highest priority first, then the one that has waited longest.
		slices.SortFunc(all, func(a, b workload) int {
			return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), a.since().Compare(b.since()))
		})
		for i, w := range all {
			waits[w.job()] = w.wait(namespace, fmt.Sprintf("place %d of %d in the queue %s: %s", i+1, len(all), queue, w.reason()), describeWorkload)
		}
	}
	return waits, nil
}

// Commands about a Workload.
const (
	describeWorkload = "kubectl -n %s describe workload %s"
	activate         = "kubectl -n %s patch workload %s --type merge --patch '{\"spec\": {\"active\": true}}'"
)

func (w workload) wait(namespace, says, next string) Wait {
	return Wait{Pod: w.job(), Why: Why{Cause: "queue", Says: says, Next: fmt.Sprintf(next, namespace, w.Name)}}
}

// since returns when the job took its place: at its creation, or when it lost its nodes because not all
// of its pods were ready in time, or because an admission check failed. This is the order of the
// timestamp Eviction (Ordering.GetQueueOrderTimestamp in pkg/workload of Kueue v0.15.2).
func (w workload) since() time.Time {
	evicted := meta.FindStatusCondition(w.Status.Conditions, "Evicted")
	if evicted != nil && evicted.Status == metav1.ConditionTrue && (evicted.Reason == "PodsReadyTimeout" || evicted.Reason == "AdmissionCheck") {
		return evicted.LastTransitionTime.Time
	}
	return w.CreationTimestamp.Time
}

// waits reports whether Kueue has not admitted the job.
func (w workload) waits() bool {
	return !meta.IsStatusConditionTrue(w.Status.Conditions, "Admitted") && !meta.IsStatusConditionTrue(w.Status.Conditions, "Finished")
}

// job returns the name of the JobSet.
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
