package kube

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// OperatorArgs describes an operator: a program that creates pods for custom resources. It
// runs as one Deployment, with its own identity, in its own namespace.
type OperatorArgs struct {
	// Name is the name of the Deployment, the service account and the roles.
	Name string
	// Namespace is created for the operator.
	Namespace string
	// PodSecurity are the labels of Namespace that say which pods it admits.
	PodSecurity map[string]string
	// Kinds are the custom resources that the operator serves.
	Kinds []Kind
	// RoleNamespace is where the operator has the rights of Role: Namespace, or a
	// namespace that exists before the operator.
	RoleNamespace string
	Role          []rbacv1.PolicyRule
	// ClusterRole are the rights in all namespaces.
	ClusterRole []rbacv1.PolicyRule
	// Before are further objects that exist before the Deployment.
	Before []Named
	// Service leads to the webhooks of an operator that the API server calls.
	Service *corev1.Service
	// Container has the image and everything else that differs between operators. Its
	// name is set to Name.
	Container corev1.Container
	Volumes   []corev1.Volume
	// User is the user that runs the container. The program does not need root.
	User      int64
	Placement Placement
}

// Named is an object and the name of its resource in Pulumi.
type Named struct {
	Resource string
	Object   runtime.Object
}

// Kind is a kind of custom resource.
type Kind struct {
	// Resource is the name of the definition's resource in Pulumi.
	Resource   string
	Definition *extensionsv1.CustomResourceDefinition
}

// AddOperator registers an operator after needs. It returns the resource that is ready last, when the
// operator serves its kinds and its webhooks: the Deployment, or the Service of the webhooks.
func (o *Objects) AddOperator(name string, operator OperatorArgs, needs []pulumi.CustomResource) pulumi.CustomResource {
	namespace := o.Add(name, &corev1.Namespace{ObjectMeta: Meta("", operator.Namespace, operator.PodSecurity)}, needs)
	inNamespace := append(Needs(namespace), needs...)
	before := Needs(o.Add(name, &corev1.ServiceAccount{ObjectMeta: operator.meta(operator.Namespace)}, inNamespace))
	for _, policy := range operator.policies() {
		before = append(before, o.Add(policy.Name, policy, inNamespace))
	}
	before = append(before, o.addRights(name, operator, needs, inNamespace)...)
	for _, kind := range operator.Kinds {
		kind.Definition.Labels = operator.labels()
		before = append(before, o.Add(kind.Resource, kind.Definition, needs))
	}
	for _, object := range operator.Before {
		before = append(before, o.Add(object.Resource, object.Object, inNamespace))
	}
	deployment := o.Add(name, operator.deployment(), append(before, needs...), WorkloadTimeouts())
	if operator.Service == nil {
		return deployment
	}
	// Pulumi waits until the Service has an endpoint: the webhooks serve before the first
	// object comes.
	return o.Add(name, operator.Service, append(Needs(deployment), needs...))
}

// addRights registers the two roles, and returns the bindings to the operator's account.
func (o *Objects) addRights(name string, operator OperatorArgs, needs, inNamespace []pulumi.CustomResource) []pulumi.CustomResource {
	roleNeeds := needs
	if operator.RoleNamespace == operator.Namespace {
		roleNeeds = inNamespace
	}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: operator.Namespace, Name: operator.Name}}
	role := o.Add(name, &rbacv1.Role{ObjectMeta: operator.meta(operator.RoleNamespace), Rules: operator.Role}, roleNeeds)
	bindings := Needs(o.Add(name, &rbacv1.RoleBinding{
		ObjectMeta: operator.meta(operator.RoleNamespace),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: operator.Name},
		Subjects:   subjects,
	}, append(Needs(role), inNamespace...)))
	if len(operator.ClusterRole) > 0 {
		role := o.Add(name, &rbacv1.ClusterRole{ObjectMeta: operator.meta(""), Rules: operator.ClusterRole}, needs)
		bindings = append(bindings, o.Add(name, &rbacv1.ClusterRoleBinding{
			ObjectMeta: operator.meta(""),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: operator.Name},
			Subjects:   subjects,
		}, append(Needs(role), inNamespace...)))
	}
	return bindings
}

func (o OperatorArgs) labels() map[string]string { return Labels(o.Name, o.Name) }

func (o OperatorArgs) meta(namespace string) metav1.ObjectMeta {
	return Meta(namespace, o.Name, o.labels())
}

// selector finds the operator's pod.
func (o OperatorArgs) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": o.Name}}
}

// policies close the namespace in both directions, except for the operator's
// connections to the API server.
func (o OperatorArgs) policies() []*networkingv1.NetworkPolicy {
	closed := &networkingv1.NetworkPolicy{
		ObjectMeta: o.meta(o.Namespace),
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		},
	}
	apiServer := &networkingv1.NetworkPolicy{
		ObjectMeta: Meta(o.Namespace, o.Name+"-api-server", o.labels()),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *o.selector(),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress:      append(ToAPIServer(), networkingv1.NetworkPolicyEgressRule{Ports: DNS()}),
		},
	}
	return []*networkingv1.NetworkPolicy{closed, apiServer}
}

// deployment runs one replica, and stops the old one before it starts a new one,
// because two operators would act on the same objects.
func (o OperatorArgs) deployment() *appsv1.Deployment {
	replicas := int32(1)
	o.Container.Name = o.Name
	pod := corev1.PodSpec{
		ServiceAccountName: o.Name,
		Containers:         []corev1.Container{o.Container},
		Volumes:            o.Volumes,
	}
	Restrict(&pod, o.User)
	o.Placement.Apply(&pod)
	return &appsv1.Deployment{
		ObjectMeta: o.meta(o.Namespace),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: o.selector(),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: o.labels()},
				Spec:       pod,
			},
		},
	}
}

// Rule returns a rule that allows verbs on resources of an API group.
func Rule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}
