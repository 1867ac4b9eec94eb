package persia

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/kube"
)

// statefulSet returns the StatefulSet of a role.
func statefulSet(role role, contract config.Contract) *appsv1.StatefulSet {
	meta := kube.Meta(NamespaceName, role.object, role.labels)
	contract.Replicas = nil // another number of one role changes no other
	meta.Annotations = contract.Annotation()
	return &appsv1.StatefulSet{
		ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{
			ServiceName: role.object,
			Replicas:    &role.running,
			Selector:    &metav1.LabelSelector{MatchLabels: role.selector},
			// In order, hundreds of replicas with minutes of image pull each would take hours, and no replica needs
			// another to start.
			PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
			Template:            role.pods,
		},
	}
}

func headlessService(role role) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: kube.Meta(NamespaceName, role.object, role.labels),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  role.selector,
			// Replicas look for each other before they are ready.
			PublishNotReadyAddresses: true,
		},
	}
	if role.Port != 0 {
		service.Spec.Ports = []corev1.ServicePort{kube.ServicePort("persia", int32(role.Port))}
	}
	return service
}
