package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
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

// TestOperatorWebhooks checks that webhooks fail closed in one namespace only, and that the API server
// reaches them through the only port that GKE opens and a container can use.
func TestOperatorWebhooks(t *testing.T) {
	args := example
	args.Webhooks = &Webhooks{
		Service: "example-webhooks", ObjectNamespace: "objects",
		Mutating: WebhookConfiguration{Resource: "m", Name: "mutating", Webhooks: []Webhook{{
			Kind: "thing", Group: "example.com", Version: "v1", Resources: []string{"things"}, Operations: OnCreate,
		}}},
		Validating: WebhookConfiguration{Resource: "v", Name: "validating", Webhooks: []Webhook{{
			Kind: "thing", Group: "example.com", Version: "v1", Resources: []string{"things"}, Operations: OnWrite,
		}}},
	}
	objects := args.webhookObjects()
	mutating := objects[1].Object.(*admissionv1.MutatingWebhookConfiguration).Webhooks
	require.Len(t, mutating, 1)
	assert.Equal(t, "mthing.kb.io", mutating[0].Name)
	assert.Equal(t, "/mutate-example-com-v1-thing", *mutating[0].ClientConfig.Service.Path)
	assert.Equal(t, "examples", mutating[0].ClientConfig.Service.Namespace)
	validating := objects[2].Object.(*admissionv1.ValidatingWebhookConfiguration).Webhooks
	require.Len(t, validating, 1)
	assert.Equal(t, "vthing.kb.io", validating[0].Name)
	assert.Equal(t, "/validate-example-com-v1-thing", *validating[0].ClientConfig.Service.Path)
	assert.Equal(t, map[string]string{"kubernetes.io/metadata.name": "objects"}, validating[0].NamespaceSelector.MatchLabels)
	assert.Equal(t, admissionv1.Fail, *validating[0].FailurePolicy)

	ports := args.deployment().Spec.Template.Spec.Containers[0].Ports
	assert.Equal(t, int32(10250), ports[0].ContainerPort)
	assert.Equal(t, 10250, args.webhookService().Spec.Ports[0].TargetPort.IntValue())
	assert.Equal(t, 10250, args.webhookPolicy().Spec.Ingress[0].Ports[0].Port.IntValue())
}
