package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

var example = OperatorArgs{
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

// TestReadOperator reads what differs between operators, and gives all objects their labels.
func TestReadOperator(t *testing.T) {
	operator, err := ReadOperator(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: example, namespace: examples}
spec:
  template:
    spec:
      securityContext: {runAsUser: 1000}
      containers: [{image: {{.}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: example, namespace: things}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
---
apiVersion: v1
kind: Secret
metadata: {name: certificate, namespace: examples, annotations: {resource: other}}
`, "example:1.2.3")
	require.NoError(t, err)
	assert.Equal(t, "things", operator.RoleNamespace)
	assert.Equal(t, "example:1.2.3", operator.deployment().Spec.Template.Spec.Containers[0].Image)
	require.Len(t, operator.Before, 1)
	assert.Equal(t, "other", operator.Before[0].Resource)
	assert.Equal(t, Meta("examples", "certificate", operator.labels()).Labels, operator.Before[0].Object.(*corev1.Secret).Labels)

	_, err = ReadOperator("apiVersion: v1\nkind: Secret\nmetadata: {nme: a}", nil)
	assert.ErrorContains(t, err, `unknown field "nme"`)
}
