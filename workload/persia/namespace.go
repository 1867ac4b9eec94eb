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
// script they start with, and what shows their metrics. Nobody speaks with anybody
// there but whom a job's own policy lets.
type Namespace struct {
	pulumi.ResourceState
}

// NamespaceArgs describes where jobs run.
type NamespaceArgs struct {
	// HostPaths says that jobs mount directories of their nodes, which no Pod
	// Security Standard but the privileged allows.
	HostPaths bool
	// ManagedPrometheus says that the cluster has Managed Service for Prometheus.
	ManagedPrometheus bool
	// Needs come before the namespace.
	Needs []pulumi.Resource
}

// NewNamespace registers the namespace of the stack's jobs.
func NewNamespace(ctx *pulumi.Context, name string, args NamespaceArgs, opts ...pulumi.ResourceOption) (*Namespace, error) {
	component := &Namespace{}
	if err := ctx.RegisterComponentResource("persia:workload:Namespace", name, component, opts...); err != nil {
		return nil, err
	}
	child := kube.Child(component, args.Needs)

	security := kube.BaselinePodSecurity()
	if args.HostPaths {
		security = kube.NoPodSecurity()
	}
	namespace, err := kube.Register(ctx, name, &corev1.Namespace{
		ObjectMeta: kube.Meta("", NamespaceName, security),
	}, child)
	if err != nil {
		return nil, err
	}
	child = pulumi.Composite(child, pulumi.DependsOn([]pulumi.Resource{namespace}))
	if _, err := kube.Register(ctx, name+"-closed", closedPolicy(), child); err != nil {
		return nil, err
	}
	if _, err := kube.Register(ctx, name+"-launch", launchConfigMap(), child); err != nil {
		return nil, err
	}
	noToken := false
	if _, err := kube.Register(ctx, name, &corev1.ServiceAccount{
		ObjectMeta:                   kube.Meta(NamespaceName, ServiceAccountName, kube.Labels("jobs", ServiceAccountName)),
		AutomountServiceAccountToken: &noToken,
	}, child); err != nil {
		return nil, err
	}
	if err := registerMonitoring(ctx, name, args.ManagedPrometheus, child); err != nil {
		return nil, err
	}
	return component, ctx.RegisterResourceOutputs(component, pulumi.Map{})
}
