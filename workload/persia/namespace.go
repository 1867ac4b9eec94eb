package persia

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/kube"
)

const (
	// NamespaceName is the Kubernetes namespace of a stack's jobs.
	NamespaceName = "persia"
	// ServiceAccountName is the Kubernetes service account of their pods. Its
	// rights outside the cluster come through Workload Identity.
	ServiceAccountName = "persia"
)

// Namespace is where the jobs of a stack run, the account they run as, and the
// script they start with.
type Namespace struct {
	pulumi.ResourceState
}

// NewNamespace registers the namespace of the stack's jobs, after needs.
func NewNamespace(ctx *pulumi.Context, name string, needs []pulumi.Resource, opts ...pulumi.ResourceOption) (*Namespace, error) {
	component := &Namespace{}
	if err := ctx.RegisterComponentResource("persia:workload:Namespace", name, component, opts...); err != nil {
		return nil, err
	}
	child := kube.Child(component, needs)

	namespace, err := kube.Register(ctx, name, &corev1.Namespace{
		ObjectMeta: kube.Meta("", NamespaceName, kube.BaselinePodSecurity()),
	}, child)
	if err != nil {
		return nil, err
	}
	if _, err := kube.Register(ctx, name+"-launch", launchConfigMap(), child, pulumi.DependsOn([]pulumi.Resource{namespace})); err != nil {
		return nil, err
	}
	noToken := false
	if _, err := kube.Register(ctx, name, &corev1.ServiceAccount{
		ObjectMeta:                   kube.Meta(NamespaceName, ServiceAccountName, kube.Labels("jobs", ServiceAccountName)),
		AutomountServiceAccountToken: &noToken,
	}, child, pulumi.DependsOn([]pulumi.Resource{namespace})); err != nil {
		return nil, err
	}
	return component, ctx.RegisterResourceOutputs(component, pulumi.Map{})
}
