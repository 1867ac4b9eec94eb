package status

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var (
	// workloads are Kueue's records of jobs in queues.
	workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}
	// natsClusters are what the NATS operator makes servers for.
	natsClusters = schema.GroupVersionResource{Group: "nats.io", Version: "v1alpha2", Resource: "natsclusters"}
	// requests ask GKE for the nodes of nn-workers, and have the names of their jobs.
	requests = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1", Resource: "provisioningrequests"}
)

// record has the fields of a workload or a request that [Read] needs.
type record struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		QueueName string `json:"queueName"`
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

// answers are what conditions mean. The first one that a record has counts.
var answers = []struct {
	condition string
	status    metav1.ConditionStatus
	means     string
}{
	{"Failed", metav1.ConditionTrue, "GKE has given up, and is asked again: "},
	{"CapacityRevoked", metav1.ConditionTrue, "GKE has taken the nodes back, and is asked again: "},
	{"BookingExpired", metav1.ConditionTrue, "the nn-workers have not used the nodes in time, and GKE is asked again: "},
	{"Provisioned", metav1.ConditionTrue, "the nodes are there: "},
	{"Accepted", metav1.ConditionTrue, "GKE waits until it has all nodes at once: "},
	// Kueue's messages are whole sentences.
	{"QuotaReserved", metav1.ConditionFalse, ""},
	{"QuotaReserved", metav1.ConditionTrue, ""},
	{"Evicted", metav1.ConditionTrue, ""},
}

func (r record) answer(otherwise string) string {
	for _, row := range answers {
		if c := meta.FindStatusCondition(r.Status.Conditions, row.condition); c != nil && c.Status == row.status {
			return row.means + c.Message
		}
	}
	return otherwise
}

// records returns all objects of a kind, or none in a cluster without this version of it.
func records(ctx context.Context, client dynamic.Interface, kind schema.GroupVersionResource) ([]record, error) {
	list, err := client.Resource(kind).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	var all struct {
		Items []record `json:"items"`
	}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), &all)
	}
	return all.Items, err
}

// queued returns what jobs wait for in Kueue's queues at a time, by NAMESPACE/JOB.
func queued(all []record, now time.Time) map[string][]Wait {
	waits := map[string][]Wait{}
	for _, w := range all {
		place, verb, again := "in the queue "+w.Spec.QueueName, "describe workload "+w.Name, w.Status.RequeueState.RequeueAt
		switch {
		case meta.IsStatusConditionTrue(w.Status.Conditions, "Admitted") || meta.IsStatusConditionTrue(w.Status.Conditions, "Finished"):
			continue
		case w.Spec.Active != nil && !*w.Spec.Active:
			place = "out of the queue " + w.Spec.QueueName + " until it is active"
			verb = "patch workload " + w.Name + ` --type merge --patch '{"spec": {"active": true}}'`
		case again != nil && again.After(now):
			place = fmt.Sprintf("out of the queue %s until %s, after %d starts without all pods",
				w.Spec.QueueName, again.UTC().Format(time.RFC3339), w.Status.RequeueState.Count)
		}
		waits[w.Namespace+"/"+w.job()] = []Wait{{
			Cause: "queue", Pod: w.job(), Says: place + ": " + w.answer("Kueue has not looked at it yet"),
			Next: "kubectl -n " + w.Namespace + " " + verb,
		}}
	}
	return waits
}

// job returns the name of the JobSet of a workload.
func (r record) job() string {
	if owner := metav1.GetControllerOf(&r.ObjectMeta); owner != nil {
		return owner.Name
	}
	return r.Name
}

// requested returns GKE's answers about the nodes of jobs, by NAMESPACE/JOB: of a list, about each pool that was tried.
func requested(all []record) map[string][]Wait {
	waits := map[string][]Wait{}
	for _, r := range all {
		waits[r.Namespace+"/"+r.Name] = []Wait{{
			Cause: "nodes", Pod: r.Name,
			Says: strings.TrimPrefix(r.Annotations["persia.com/tried"]+": "+r.answer("GKE has not looked at the request yet"), ": "),
			Next: fmt.Sprintf("kubectl -n %s describe provisioningrequest %s", r.Namespace, r.Name),
		}}
	}
	return waits
}
