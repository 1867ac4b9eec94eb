package kube

import (
	_ "embed"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/capacity"
)

// Operator is a program that acts on custom resources or jobs, and runs as one Deployment, with its own
// identity, in its own namespace.
type Operator struct {
	// Manifest is a [Manifest] of the operator, with the other fields as values. The Deployment comes first, with the
	// name of the operator and of its account, and then the Namespace. What all operators have in common is added:
	// see [Objects.AddOperator] and read.
	Manifest string
	Image    string `pulumi:"image"`
	Requests capacity.Resources
	// Configuration is the content of a file of the operator.
	Configuration string
	// Kinds are custom resources that the operator serves, besides those in Manifest, by the name of the
	// resource in Pulumi.
	Kinds map[string]*extensionsv1.CustomResourceDefinition
}

// AddOperator registers an operator after needs. It returns the resource that is ready last, when the
// operator serves its kinds and its webhooks: the Deployment, or the Service of the webhooks.
func (o *Objects) AddOperator(name string, operator Operator, needs []pulumi.CustomResource) pulumi.CustomResource {
	deployment, objects := operator.read(o.Images.Reference(operator.Image))
	o.Outputs = operator
	own, inNamespace := deployment.ObjectMeta, needs
	var before []pulumi.CustomResource
	var webhooks *corev1.Service
	for _, object := range objects {
		resource, after := resourceOf(object, metaOf(object).Name), inNamespace
		switch object := object.(type) {
		case *corev1.Namespace:
			inNamespace = append(Needs(o.Add(name, object, needs)), needs...)
			continue
		case *corev1.Service:
			webhooks = object
			continue
		case *rbacv1.ClusterRole, *extensionsv1.CustomResourceDefinition:
			after = needs
		case *rbacv1.Role:
			if object.Namespace != own.Namespace {
				after = needs
			}
		}
		registered := o.Add(resource, object, after)
		if binding := bindingOf(object, own); binding != nil {
			registered = o.Add(resource, binding, append(Needs(registered), inNamespace...))
		}
		before = append(before, registered)
	}
	before = append(before, o.Add(name, &corev1.ServiceAccount{ObjectMeta: own}, inNamespace))
	for resource, definition := range operator.Kinds {
		definition.Labels = own.Labels
		before = append(before, o.Add(resource, definition, needs))
	}
	o.System.Apply(&deployment.Spec.Template.Spec)
	ready := o.Add(name, deployment, append(before, needs...), WorkloadTimeouts())
	if webhooks == nil {
		return ready
	}
	// Pulumi waits until the Service has an endpoint: the webhooks serve before the first object comes.
	return o.Add(name, webhooks, append(Needs(ready), needs...))
}

// bindingOf gives an account a role with the account's name. It returns nil for other objects.
func bindingOf(object runtime.Object, own metav1.ObjectMeta) runtime.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: own.Namespace, Name: own.Name}}
	reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Name: own.Name}
	switch role := object.(type) {
	case *rbacv1.ClusterRole:
		reference.Kind = "ClusterRole"
		return &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: reference, Subjects: subjects}
	case *rbacv1.Role:
		if role.Name == own.Name {
			reference.Kind = "Role"
			return &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: reference, Subjects: subjects}
		}
	}
	return nil
}

// operatorPolicies are the policies of the namespace of an operator's Deployment.
//
//go:embed operator.yaml
var operatorPolicies string

// read reads the manifest of an operator, whose image nodes pull from a reference. It completes the Deployment, and
// adds policies that close the namespace in both directions, except for the operator's connections to the API server.
func (o Operator) read(image string) (*appsv1.Deployment, []runtime.Object) {
	objects := Manifest(o.Manifest, map[string]any{
		"Image": image, "Configuration": o.Configuration, "Requests": Requests(o.Requests),
	})
	deployment := objects[0].(*appsv1.Deployment)
	deployment.Labels = Labels(deployment.Name, deployment.Name)
	for _, object := range objects {
		if _, namespace := object.(*corev1.Namespace); !namespace {
			metaOf(object).Labels = deployment.Labels
		}
	}
	complete(deployment)
	return deployment, append(objects[1:], Manifest(operatorPolicies, deployment)...)
}

// complete gives a Deployment what all operators have in common. It runs one replica, and stops the old one
// before it starts a new one, because two operators would act on the same objects.
func complete(deployment *appsv1.Deployment) {
	spec := &deployment.Spec
	spec.Replicas = new(int32(1))
	spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": deployment.Name}}
	spec.Template.Labels = deployment.Labels
	spec.Template.Spec.ServiceAccountName = deployment.Name
	Restrict(&spec.Template.Spec, *spec.Template.Spec.SecurityContext.RunAsUser)
}
