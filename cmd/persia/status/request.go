package status

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"persia/gcp"
)

// request asks GKE for the nodes of a job's nn-workers, and has the name of the job: the fields of
// autoscaling.x-k8s.io/v1 that [Read] needs.
type request struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

var requests = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1", Resource: "provisioningrequests"}

// waitsForRequest reports whether a pod waits for the nodes of a request.
func waitsForRequest(pod corev1.Pod) bool {
	return pod.Annotations[gcp.AnnotationRequest] != "" && !Ready(pod)
}

// requested returns GKE's last answer about the nodes of a job, or false if the job has not asked for any.
func requested(ctx context.Context, client dynamic.Interface, namespace, job string) (Wait, bool, error) {
	item, err := client.Resource(requests).Namespace(namespace).Get(ctx, job, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Wait{}, false, nil
	}
	var r request
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &r)
	}
	if err != nil {
		return Wait{}, false, fmt.Errorf("read the request for nodes of %s: %w", job, err)
	}
	return Wait{Pod: job, Why: Why{
		Cause: "nodes",
		Says:  r.says(),
		Next:  fmt.Sprintf("kubectl -n %s describe provisioningrequest %s", namespace, job),
	}}, true, nil
}

// says returns GKE's last answer.
func (r request) says() string {
	for _, answer := range []struct{ condition, means string }{
		{"Failed", "GKE has given up, and is asked again"},
		{"CapacityRevoked", "GKE has taken the nodes back, and is asked again"},
		{"BookingExpired", "the nn-workers have not used the nodes in time, and GKE is asked again"},
		{"Provisioned", "the nodes are there"},
		{"Accepted", "GKE waits until it has all nodes at once"},
	} {
		if condition := meta.FindStatusCondition(r.Status.Conditions, answer.condition); condition != nil && condition.Status == metav1.ConditionTrue {
			return answer.means + ": " + condition.Message
		}
	}
	return "GKE has not looked at the request yet"
}
