package cluster

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Holders names the objects that keep storage from being deleted: the pods that mount a claim,
// or the claim of a volume. It leaves out objects that it cannot read.
func (c *Client) Holders(ctx context.Context, obj *unstructured.Unstructured) []string {
	switch gvk := obj.GroupVersionKind(); {
	case gvk.Group != "":
		return nil
	case gvk.Kind == "PersistentVolumeClaim":
		return c.podsWith(ctx, obj)
	case gvk.Kind == "PersistentVolume":
		return claimOf(obj)
	}
	return nil
}

func (c *Client) podsWith(ctx context.Context, claim *unstructured.Unstructured) []string {
	list, err := c.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("pods")).
		Namespace(claim.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var names []string
	for _, item := range list.Items {
		var pod corev1.Pod
		if runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &pod) != nil {
			continue
		}
		if slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
			return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim.GetName()
		}) {
			names = append(names, "the pod "+pod.Name)
		}
	}
	return names
}

// claimOf returns the claim that a bound volume belongs to.
func claimOf(volume *unstructured.Unstructured) []string {
	if phase, _, _ := unstructured.NestedString(volume.Object, "status", "phase"); phase != "Bound" {
		return nil
	}
	namespace, _, _ := unstructured.NestedString(volume.Object, "spec", "claimRef", "namespace")
	name, _, _ := unstructured.NestedString(volume.Object, "spec", "claimRef", "name")
	return []string{"the claim " + namespace + "/" + name}
}

// HeldBy adds the objects that delay a deletion to its message.
func HeldBy(waitingFor string, holders []string) string {
	const most = 3
	if len(holders) == 0 {
		return waitingFor
	}
	more := ""
	if len(holders) > most {
		holders, more = holders[:most], " and others"
	}
	return waitingFor + "; held by " + strings.Join(holders, ", ") + more
}
