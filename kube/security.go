package kube

import (
	corev1 "k8s.io/api/core/v1"
)

// Restrict runs every container of a pod as an unprivileged user, as Kubernetes'
// restricted Pod Security Standard requires, and with a read-only root file system.
func Restrict(pod *corev1.PodSpec, user int64) {
	yes, no := true, false
	pod.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot:   &yes,
		RunAsUser:      &user,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	for i := range pod.Containers {
		pod.Containers[i].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			ReadOnlyRootFilesystem:   &yes,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
}
