package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/capacity"
)

// FieldEnv returns a variable with a field of the pod.
func FieldEnv(name, field string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}}}
}

// Placement says which nodes a pod may run on: nodes that have every label of
// NodeSelector, including nodes whose taints are tolerated.
type Placement struct {
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
}

// Apply restricts the pods of a template to the nodes of the placement.
func (p Placement) Apply(pod *corev1.PodSpec) {
	pod.NodeSelector = p.NodeSelector
	pod.Tolerations = p.Tolerations
}

// Restrict runs every container of a pod as an unprivileged user, as Kubernetes'
// restricted Pod Security Standard requires, and with a read-only root file system.
func Restrict(pod *corev1.PodSpec, user int64) {
	pod.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		RunAsUser:      &user,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	for i := range pod.Containers {
		pod.Containers[i].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
}

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
