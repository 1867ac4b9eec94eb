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

	"persia/capacity"
)

// Operator is a program that acts on custom resources or jobs, and runs as one Deployment, with its own
// identity, in its own namespace.
type Operator struct {
	// Manifest has the objects of the operator, as YAML documents in which text/template fills in the other
	// fields. The Deployment comes first. It has the operator's name, a container, volumes and a user: what
	// all operators have in common is added to it, as are the account, its bindings, the policies that close
	// the namespace, and the labels of all objects.
	Manifest string
	Image    string
	Requests capacity.Resources
	// Configuration is the content of a file of the operator.
	Configuration string
	// Kinds are custom resources that the operator serves, besides those in Manifest.
	Kinds []Kind
}

// operator is an operator as its manifest describes it.
type operator struct {
	// name is the name of the Deployment, the service account and the roles.
	name, namespace string
	// podSecurity are the labels of the namespace that say which pods it admits.
	podSecurity map[string]string
	kinds       []Kind
	// role are the rights in roleNamespace, which is the operator's or exists before, and clusterRole the
	// rights in all namespaces.
	role, clusterRole []rbacv1.PolicyRule
	roleNamespace     string
	// before are further objects that exist before the Deployment.
	before []named
	// service leads to the webhooks of an operator that the API server calls.
	service   *corev1.Service
	container corev1.Container
	volumes   []corev1.Volume
	user      int64
	placement Placement
}

// named is an object and the name of its resource in Pulumi.
type named struct {
	resource string
	object   runtime.Object
}

// Kind is a kind of custom resource.
type Kind struct {
	// Resource is the name of the definition's resource in Pulumi.
	Resource   string
	Definition *extensionsv1.CustomResourceDefinition
}

// AddOperator registers an operator after needs. It returns the resource that is ready last, when the
// operator serves its kinds and its webhooks: the Deployment, or the Service of the webhooks.
func (o *Objects) AddOperator(name string, described Operator, needs []pulumi.CustomResource) pulumi.CustomResource {
	operator, err := described.read(o.Images.Reference(described.Image))
	o.Fail(err)
	operator.placement = o.System
	namespace := o.Add(name, &corev1.Namespace{ObjectMeta: Meta("", operator.namespace, operator.podSecurity)}, needs)
	inNamespace := append(Needs(namespace), needs...)
	before := Needs(o.Add(name, &corev1.ServiceAccount{ObjectMeta: operator.meta(operator.namespace)}, inNamespace))
	for _, policy := range operator.policies() {
		before = append(before, o.Add(policy.Name, policy, inNamespace))
	}
	before = append(before, o.addRights(name, operator, needs, inNamespace)...)
	for _, kind := range operator.kinds {
		kind.Definition.Labels = operator.labels()
		before = append(before, o.Add(kind.Resource, kind.Definition, needs))
	}
	for _, object := range operator.before {
		before = append(before, o.Add(object.resource, object.object, inNamespace))
	}
	deployment := o.Add(name, operator.deployment(), append(before, needs...), WorkloadTimeouts())
	if operator.service == nil {
		return deployment
	}
	// Pulumi waits until the Service has an endpoint: the webhooks serve before the first
	// object comes.
	return o.Add(name, operator.service, append(Needs(deployment), needs...))
}

// addRights registers the two roles, and returns the bindings to the operator's account.
func (o *Objects) addRights(name string, operator operator, needs, inNamespace []pulumi.CustomResource) []pulumi.CustomResource {
	roleNeeds := needs
	if operator.roleNamespace == operator.namespace {
		roleNeeds = inNamespace
	}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: operator.namespace, Name: operator.name}}
	role := o.Add(name, &rbacv1.Role{ObjectMeta: operator.meta(operator.roleNamespace), Rules: operator.role}, roleNeeds)
	bindings := Needs(o.Add(name, &rbacv1.RoleBinding{
		ObjectMeta: operator.meta(operator.roleNamespace),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: operator.name},
		Subjects:   subjects,
	}, append(Needs(role), inNamespace...)))
	if len(operator.clusterRole) > 0 {
		role := o.Add(name, &rbacv1.ClusterRole{ObjectMeta: operator.meta(""), Rules: operator.clusterRole}, needs)
		bindings = append(bindings, o.Add(name, &rbacv1.ClusterRoleBinding{
			ObjectMeta: operator.meta(""),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: operator.name},
			Subjects:   subjects,
		}, append(Needs(role), inNamespace...)))
	}
	return bindings
}

func (o operator) labels() map[string]string { return Labels(o.name, o.name) }

func (o operator) meta(namespace string) metav1.ObjectMeta {
	return Meta(namespace, o.name, o.labels())
}

// selector finds the operator's pod.
func (o operator) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": o.name}}
}

// policies close the namespace in both directions, except for the operator's
// connections to the API server.
func (o operator) policies() []*networkingv1.NetworkPolicy {
	closed := &networkingv1.NetworkPolicy{
		ObjectMeta: o.meta(o.namespace),
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		},
	}
	apiServer := &networkingv1.NetworkPolicy{
		ObjectMeta: Meta(o.namespace, o.name+"-api-server", o.labels()),
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
func (o operator) deployment() *appsv1.Deployment {
	o.container.Name = o.name
	pod := corev1.PodSpec{
		ServiceAccountName: o.name,
		Containers:         []corev1.Container{o.container},
		Volumes:            o.volumes,
	}
	Restrict(&pod, o.user)
	o.placement.Apply(&pod)
	return &appsv1.Deployment{
		ObjectMeta: o.meta(o.namespace),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
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
