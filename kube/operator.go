package kube

import (
	"slices"

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
	// Webhooks are nil for an operator that the API server does not call.
	Webhooks *Webhooks
	// Container has the image and everything else that differs between operators. Its
	// name is set to Name.
	Container corev1.Container
	Volumes   []corev1.Volume
	// User is the user that runs the container. The program does not need root.
	User      int64
	Placement Placement
}

// Operator is an operator and the kinds that it serves.
type Operator struct {
	pulumi.ResourceState

	// Objects are ready when the operator serves its kinds and its webhooks.
	Objects []pulumi.CustomResource
}

// NewOperator registers an operator as a component of a type. The operator comes after needs.
func NewOperator(ctx *pulumi.Context, typeToken, name string, args OperatorArgs, needs []pulumi.CustomResource, opts ...pulumi.ResourceOption) (*Operator, error) {
	component := &Operator{}
	if err := ctx.RegisterComponentResource(typeToken, name, component, opts...); err != nil {
		return nil, err
	}
	ready, err := RegisterOperator(ctx, name, args, Child(component, needs))
	if err != nil {
		return nil, err
	}
	component.Objects = []pulumi.CustomResource{ready}
	return component, ctx.RegisterResourceOutputs(component, pulumi.Map{})
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

// RegisterOperator registers an operator as children of a component. It returns the resource that is
// ready last: the Deployment, or the Service of the webhooks.
func RegisterOperator(ctx *pulumi.Context, name string, operator OperatorArgs, child pulumi.ResourceOption) (pulumi.CustomResource, error) {
	namespace, err := Register(ctx, name, &corev1.Namespace{
		ObjectMeta: Meta("", operator.Namespace, operator.PodSecurity),
	}, child)
	if err != nil {
		return nil, err
	}
	inNamespace := After([]pulumi.CustomResource{namespace})
	account, err := Register(ctx, name, &corev1.ServiceAccount{
		ObjectMeta: operator.meta(operator.Namespace),
	}, child, inNamespace)
	if err != nil {
		return nil, err
	}
	needs := []pulumi.CustomResource{account}
	for _, policy := range operator.policies() {
		registered, err := Register(ctx, policy.Name, policy, child, inNamespace)
		if err != nil {
			return nil, err
		}
		needs = append(needs, registered)
	}
	rights, err := registerRights(ctx, name, operator, child, inNamespace)
	if err != nil {
		return nil, err
	}
	needs = append(needs, rights...)
	for _, kind := range operator.Kinds {
		defined, err := Register(ctx, kind.Resource, kind.Definition, child)
		if err != nil {
			return nil, err
		}
		needs = append(needs, defined)
	}
	for _, object := range slices.Concat(operator.Before, operator.webhookObjects()) {
		registered, err := Register(ctx, object.Resource, object.Object, child, inNamespace)
		if err != nil {
			return nil, err
		}
		needs = append(needs, registered)
	}
	deployment, err := Register(ctx, name, operator.deployment(), child, After(needs), WorkloadTimeouts())
	if err != nil || operator.Webhooks == nil {
		return deployment, err
	}
	// Pulumi waits until the Service has an endpoint: the webhooks serve before the first
	// object comes.
	return Register(ctx, name, operator.webhookService(), child, After([]pulumi.CustomResource{deployment}))
}

// registerRights registers the two roles, and returns the bindings to the operator's
// account.
func registerRights(ctx *pulumi.Context, name string, operator OperatorArgs, child, inNamespace pulumi.ResourceOption) ([]pulumi.CustomResource, error) {
	roleNeeds := child
	if operator.RoleNamespace == operator.Namespace {
		roleNeeds = pulumi.Composite(child, inNamespace)
	}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: operator.Namespace, Name: operator.Name}}
	role, err := Register(ctx, name, &rbacv1.Role{
		ObjectMeta: operator.meta(operator.RoleNamespace),
		Rules:      operator.Role,
	}, roleNeeds)
	if err != nil {
		return nil, err
	}
	binding, err := Register(ctx, name, &rbacv1.RoleBinding{
		ObjectMeta: operator.meta(operator.RoleNamespace),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: operator.Name},
		Subjects:   subjects,
	}, child, inNamespace, After([]pulumi.CustomResource{role}))
	if err != nil {
		return nil, err
	}
	if len(operator.ClusterRole) == 0 {
		return []pulumi.CustomResource{binding}, nil
	}
	clusterRole, err := Register(ctx, name, &rbacv1.ClusterRole{
		ObjectMeta: operator.meta(""),
		Rules:      operator.ClusterRole,
	}, child)
	if err != nil {
		return nil, err
	}
	clusterBinding, err := Register(ctx, name, &rbacv1.ClusterRoleBinding{
		ObjectMeta: operator.meta(""),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: operator.Name},
		Subjects:   subjects,
	}, child, inNamespace, After([]pulumi.CustomResource{clusterRole}))
	if err != nil {
		return nil, err
	}
	return []pulumi.CustomResource{binding, clusterBinding}, nil
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
	if o.Webhooks != nil {
		o.Container.Ports = []corev1.ContainerPort{
			{Name: "webhooks", ContainerPort: WebhookPort},
			{Name: "health", ContainerPort: HealthPort},
		}
	}
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
