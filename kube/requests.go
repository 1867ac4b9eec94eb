package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/capacity"
)

// Requests returns resources in the form that a container requests them in.
func Requests(r capacity.Resources) corev1.ResourceList {
	list := corev1.ResourceList{}
	if r.MilliCPU > 0 {
		list[corev1.ResourceCPU] = *resource.NewMilliQuantity(r.MilliCPU, resource.DecimalSI)
	}
	if r.MemoryBytes > 0 {
		list[corev1.ResourceMemory] = *resource.NewQuantity(r.MemoryBytes, resource.BinarySI)
	}
	return list
}
