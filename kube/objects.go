package kube

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	sdkapps "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apps/v1"
	sdkcore "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	sdkrbac "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/rbac/v1"
)

// NewStatefulSet registers a StatefulSet.
func NewStatefulSet(ctx *pulumi.Context, name string, set *appsv1.StatefulSet, opts ...pulumi.ResourceOption) (*sdkapps.StatefulSet, error) {
	return sdkapps.NewStatefulSet(ctx, name, &sdkapps.StatefulSetArgs{
		Metadata: metadata(set.ObjectMeta),
		Spec:     spec[sdkapps.StatefulSetSpec, sdkapps.StatefulSetSpecOutput](&set.Spec),
	}, opts...)
}

// NewDeployment registers a Deployment.
func NewDeployment(ctx *pulumi.Context, name string, deployment *appsv1.Deployment, opts ...pulumi.ResourceOption) (*sdkapps.Deployment, error) {
	return sdkapps.NewDeployment(ctx, name, &sdkapps.DeploymentArgs{
		Metadata: metadata(deployment.ObjectMeta),
		Spec:     spec[sdkapps.DeploymentSpec, sdkapps.DeploymentSpecOutput](&deployment.Spec),
	}, opts...)
}

// NewDaemonSet registers a DaemonSet.
func NewDaemonSet(ctx *pulumi.Context, name string, set *appsv1.DaemonSet, opts ...pulumi.ResourceOption) (*sdkapps.DaemonSet, error) {
	return sdkapps.NewDaemonSet(ctx, name, &sdkapps.DaemonSetArgs{
		Metadata: metadata(set.ObjectMeta),
		Spec:     spec[sdkapps.DaemonSetSpec, sdkapps.DaemonSetSpecOutput](&set.Spec),
	}, opts...)
}

// NewService registers a Service.
func NewService(ctx *pulumi.Context, name string, service *corev1.Service, opts ...pulumi.ResourceOption) (*sdkcore.Service, error) {
	return sdkcore.NewService(ctx, name, &sdkcore.ServiceArgs{
		Metadata: metadata(service.ObjectMeta),
		Spec:     spec[sdkcore.ServiceSpec, sdkcore.ServiceSpecOutput](&service.Spec),
	}, opts...)
}

// NewNamespace registers a Namespace.
func NewNamespace(ctx *pulumi.Context, name string, namespace *corev1.Namespace, opts ...pulumi.ResourceOption) (*sdkcore.Namespace, error) {
	return sdkcore.NewNamespace(ctx, name, &sdkcore.NamespaceArgs{
		Metadata: metadata(namespace.ObjectMeta),
	}, opts...)
}

// NewServiceAccount registers a ServiceAccount.
func NewServiceAccount(ctx *pulumi.Context, name string, account *corev1.ServiceAccount, opts ...pulumi.ResourceOption) (*sdkcore.ServiceAccount, error) {
	return sdkcore.NewServiceAccount(ctx, name, &sdkcore.ServiceAccountArgs{
		Metadata:                     metadata(account.ObjectMeta),
		AutomountServiceAccountToken: pulumi.BoolPtrFromPtr(account.AutomountServiceAccountToken),
	}, opts...)
}

// NewPersistentVolume registers a PersistentVolume.
func NewPersistentVolume(ctx *pulumi.Context, name string, volume *corev1.PersistentVolume, opts ...pulumi.ResourceOption) (*sdkcore.PersistentVolume, error) {
	return sdkcore.NewPersistentVolume(ctx, name, &sdkcore.PersistentVolumeArgs{
		Metadata: metadata(volume.ObjectMeta),
		Spec:     spec[sdkcore.PersistentVolumeSpec, sdkcore.PersistentVolumeSpecOutput](&volume.Spec),
	}, opts...)
}

// NewPersistentVolumeClaim registers a PersistentVolumeClaim.
func NewPersistentVolumeClaim(ctx *pulumi.Context, name string, claim *corev1.PersistentVolumeClaim, opts ...pulumi.ResourceOption) (*sdkcore.PersistentVolumeClaim, error) {
	return sdkcore.NewPersistentVolumeClaim(ctx, name, &sdkcore.PersistentVolumeClaimArgs{
		Metadata: metadata(claim.ObjectMeta),
		Spec:     spec[sdkcore.PersistentVolumeClaimSpec, sdkcore.PersistentVolumeClaimSpecOutput](&claim.Spec),
	}, opts...)
}

// NewRole registers a Role.
func NewRole(ctx *pulumi.Context, name string, role *rbacv1.Role, opts ...pulumi.ResourceOption) (*sdkrbac.Role, error) {
	return sdkrbac.NewRole(ctx, name, &sdkrbac.RoleArgs{
		Metadata: metadata(role.ObjectMeta),
		Rules:    rules(role.Rules),
	}, opts...)
}

// NewRoleBinding registers a RoleBinding.
func NewRoleBinding(ctx *pulumi.Context, name string, binding *rbacv1.RoleBinding, opts ...pulumi.ResourceOption) (*sdkrbac.RoleBinding, error) {
	return sdkrbac.NewRoleBinding(ctx, name, &sdkrbac.RoleBindingArgs{
		Metadata: metadata(binding.ObjectMeta),
		RoleRef:  spec[sdkrbac.RoleRef, sdkrbac.RoleRefOutput](&binding.RoleRef),
		Subjects: subjects(binding.Subjects),
	}, opts...)
}

// NewClusterRole registers a ClusterRole.
func NewClusterRole(ctx *pulumi.Context, name string, role *rbacv1.ClusterRole, opts ...pulumi.ResourceOption) (*sdkrbac.ClusterRole, error) {
	return sdkrbac.NewClusterRole(ctx, name, &sdkrbac.ClusterRoleArgs{
		Metadata: metadata(role.ObjectMeta),
		Rules:    rules(role.Rules),
	}, opts...)
}

// NewClusterRoleBinding registers a ClusterRoleBinding.
func NewClusterRoleBinding(ctx *pulumi.Context, name string, binding *rbacv1.ClusterRoleBinding, opts ...pulumi.ResourceOption) (*sdkrbac.ClusterRoleBinding, error) {
	return sdkrbac.NewClusterRoleBinding(ctx, name, &sdkrbac.ClusterRoleBindingArgs{
		Metadata: metadata(binding.ObjectMeta),
		RoleRef:  spec[sdkrbac.RoleRef, sdkrbac.RoleRefOutput](&binding.RoleRef),
		Subjects: subjects(binding.Subjects),
	}, opts...)
}

func rules(rules []rbacv1.PolicyRule) sdkrbac.PolicyRuleArray {
	converted := make(sdkrbac.PolicyRuleArray, len(rules))
	for i := range rules {
		converted[i] = spec[sdkrbac.PolicyRule, sdkrbac.PolicyRuleOutput](&rules[i])
	}
	return converted
}

func subjects(subjects []rbacv1.Subject) sdkrbac.SubjectArray {
	converted := make(sdkrbac.SubjectArray, len(subjects))
	for i := range subjects {
		converted[i] = spec[sdkrbac.Subject, sdkrbac.SubjectOutput](&subjects[i])
	}
	return converted
}
