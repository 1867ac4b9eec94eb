package testkit

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Container is the container of the pods of a StatefulSet.
func Container(set *appsv1.StatefulSet) corev1.Container { return set.Spec.Template.Spec.Containers[0] }

// Variable returns a variable of a role's environment, or "".
func Variable(set *appsv1.StatefulSet, name string) corev1.EnvVar {
	for _, entry := range Container(set).Env {
		if entry.Name == name {
			return entry
		}
	}
	return corev1.EnvVar{}
}
