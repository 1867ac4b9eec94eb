package kube

import (
	corev1 "k8s.io/api/core/v1"
)

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
