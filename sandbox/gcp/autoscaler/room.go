package autoscaler

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	helpers "k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// demand is the resources and the placement that a pod requires of its node.
type demand struct {
	pod      *corev1.Pod
	requests corev1.ResourceList
	affinity nodeaffinity.RequiredNodeAffinity
}

func newDemand(pod *corev1.Pod) demand {
	requests := helpers.PodRequests(pod, helpers.PodResourcesOptions{})
	requests[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return demand{pod: pod, requests: requests, affinity: nodeaffinity.GetRequiredNodeAffinity(pod)}
}

// daemonOf returns the demand of a DaemonSet's pods.
func daemonOf(set *appsv1.DaemonSet) demand {
	return newDemand(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       set.Namespace,
			Labels:          set.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Spec: set.Spec.Template.Spec,
	})
}

// matches reports whether the pod may stand on a node, if there is room.
func (d demand) matches(node *corev1.Node) bool {
	if _, untolerated := scheduling.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints,
		d.pod.Spec.Tolerations, lasting, false); untolerated {
		return false
	}
	match, err := d.affinity.Match(node)
	return err == nil && match
}

// lasting reports whether a taint keeps pods away for longer than a node takes to start.
func lasting(taint *corev1.Taint) bool {
	return taint.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(taint.Key, "node.kubernetes.io/")
}

// room is the free part of a node.
type room struct {
	node *corev1.Node
	free corev1.ResourceList
	// pods stand on the node, or could. Those of DaemonSets are not among them.
	pods []*corev1.Pod
	// planned says that the node is yet to be made.
	planned bool
}

func (r *room) fits(d demand) bool {
	return !r.node.Spec.Unschedulable && r.holds(d.requests) && d.matches(r.node) && !r.repels(d.pod)
}

func (r *room) holds(requests corev1.ResourceList) bool {
	for name, amount := range requests {
		if free := r.free[name]; !amount.IsZero() && free.Cmp(amount) < 0 {
			return false
		}
	}
	return true
}

// repels reports whether a pod and one that is there are to be kept apart.
func (r *room) repels(pod *corev1.Pod) bool {
	return slices.ContainsFunc(r.pods, func(other *corev1.Pod) bool { return avoids(pod, other) || avoids(other, pod) })
}

func (r *room) take(d demand) {
	for name, amount := range d.requests {
		free := r.free[name]
		free.Sub(amount)
		r.free[name] = free
	}
	if works(d.pod) {
		r.pods = append(r.pods, d.pod)
	}
}

// avoids reports whether a pod must not share a node with another.
func avoids(pod, other *corev1.Pod) bool {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return false
	}
	terms := affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	return slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		return err == nil && term.TopologyKey == corev1.LabelHostname && selector.Matches(labels.Set(other.Labels)) &&
			(other.Namespace == pod.Namespace && len(term.Namespaces) == 0 || slices.Contains(term.Namespaces, other.Namespace))
	})
}

// finished reports whether a pod has left its node.
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// works reports whether the autoscaler keeps a node for a pod. It keeps none for a DaemonSet's pod.
func works(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return !finished(pod) && (owner == nil || owner.Kind != "DaemonSet")
}

// waits reports whether the scheduler has found no node for a pod.
func waits(pod *corev1.Pod) bool {
	return works(pod) && pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil &&
		slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
				condition.Reason == corev1.PodReasonUnschedulable
		})
}
