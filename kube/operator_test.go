package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

var example = Operator{
	Name:      "example-operator",
	Namespace: "examples",
	Container: corev1.Container{Image: "example:1.2.3", Args: []string{"run"}},
	User:      1000,
	Placement: Placement{NodeSelector: map[string]string{"pool": "system"}},
}

func TestOperatorDeployment(t *testing.T) {
	deployment := example.deployment()
	assert.Equal(t, "examples", deployment.Namespace)
	assert.Equal(t, int32(1), *deployment.Spec.Replicas)
	assert.Equal(t, appsv1.RecreateDeploymentStrategyType, deployment.Spec.Strategy.Type, "two operators act on the same objects")
	assert.Subset(t, deployment.Spec.Template.Labels, deployment.Spec.Selector.MatchLabels)

	pod := deployment.Spec.Template.Spec
	assert.Equal(t, "example-operator", pod.ServiceAccountName)
	assert.Equal(t, map[string]string{"pool": "system"}, pod.NodeSelector)
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	assert.Equal(t, int64(1000), *pod.SecurityContext.RunAsUser)
	assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
	container := pod.Containers[0]
	assert.Equal(t, "example-operator", container.Name)
	assert.Equal(t, "example:1.2.3", container.Image)
	assert.False(t, *container.SecurityContext.AllowPrivilegeEscalation)
	assert.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, []corev1.Capability{"ALL"}, container.SecurityContext.Capabilities.Drop)
}

// TestOperatorPolicies: no pod reaches an operator, and an operator reaches only the API server.
func TestOperatorPolicies(t *testing.T) {
	policies := example.policies()
	closed, open := policies[0], policies[1]
	assert.Empty(t, closed.Spec.PodSelector, "all pods of the namespace")
	assert.ElementsMatch(t, []networkingv1.PolicyType{"Ingress", "Egress"}, closed.Spec.PolicyTypes)
	assert.Empty(t, closed.Spec.Ingress)
	assert.Empty(t, closed.Spec.Egress)

	assert.Equal(t, example.selector().MatchLabels, open.Spec.PodSelector.MatchLabels)
	assert.Equal(t, []networkingv1.PolicyType{"Egress"}, open.Spec.PolicyTypes)
	var ports []int
	for _, rule := range open.Spec.Egress {
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.IntValue())
		}
	}
	assert.Equal(t, []int{443, 6443, 53, 53}, ports)
	for _, policy := range policies {
		assert.Equal(t, "examples", policy.Namespace)
	}
	assert.NotEqual(t, closed.Name, open.Name)
}
