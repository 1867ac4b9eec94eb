package status

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// owner is an object that makes pods.
type owner struct {
	metav1.ObjectMeta
	kind string
	// wanted is how many pods it is to have, and there how many it has.
	wanted, there int32
}

// ownersOf returns what makes the pods of roles.
func ownersOf(sets []appsv1.StatefulSet, jobs []batchv1.Job) []owner {
	var owners []owner
	for _, set := range sets {
		owners = append(owners, owner{set.ObjectMeta, "StatefulSet", ptr.Deref(set.Spec.Replicas, 1), set.Status.Replicas})
	}
	for _, job := range jobs {
		if !isCompletion(job) && !ptr.Deref(job.Spec.Suspend, false) {
			owners = append(owners, owner{job.ObjectMeta, "Job", ptr.Deref(job.Spec.Parallelism, 1) - job.Status.Succeeded, job.Status.Active})
		}
	}
	return owners
}

// explain returns why pods of an owner are not there.
func (o owner) explain(events []corev1.Event) Wait {
	wait := Wait{
		Cause: "refused", Pod: o.Name, Says: fmt.Sprintf("%d of %d pods are there", o.there, o.wanted),
		Next: fmt.Sprintf("kubectl -n %s describe %s %s", o.Namespace, strings.ToLower(o.kind), o.Name),
	}
	var last corev1.Event
	for _, event := range events {
		of := event.InvolvedObject
		if event.Reason == "FailedCreate" && of.Kind == o.kind && of.Name == o.Name && !eventTime(event).Before(eventTime(last)) {
			last = event
			wait.Says = event.Message
		}
	}
	return wait
}

// idle returns the controllers, operators, and gateways of stacks that do not run.
func idle(deployments []appsv1.Deployment) []Wait {
	var waits []Wait
	for _, d := range deployments {
		// No stack wants none: a person has scaled it down.
		if wanted := max(1, ptr.Deref(d.Spec.Replicas, 1)); d.Status.ReadyReplicas < wanted {
			waits = append(waits, Wait{
				Cause: "controller", Pod: d.Name,
				Says: fmt.Sprintf("%d of %d pods are ready, and what it works for waits", d.Status.ReadyReplicas, wanted),
				Next: fmt.Sprintf("kubectl -n %s describe deployment %s", d.Namespace, d.Name),
			})
		}
	}
	return waits
}
