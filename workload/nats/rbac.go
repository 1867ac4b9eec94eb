package nats

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/kube"
)

// grantRights lets the operator manage servers in its namespace, and its two
// kinds, by name, in the cluster.
func grantRights(ctx *pulumi.Context, name string, child, inNamespace pulumi.ResourceOption) ([]pulumi.Resource, error) {
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: Namespace, Name: operatorName}}

	role, err := kube.Register(ctx, name, &rbacv1.Role{
		ObjectMeta: operatorMeta(Namespace),
		Rules:      namespaceRules(),
	}, child, inNamespace)
	if err != nil {
		return nil, err
	}
	binding, err := kube.Register(ctx, name, &rbacv1.RoleBinding{
		ObjectMeta: operatorMeta(Namespace),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: operatorName},
		Subjects:   subjects,
	}, child, pulumi.DependsOn([]pulumi.Resource{role}))
	if err != nil {
		return nil, err
	}
	clusterRole, err := kube.Register(ctx, name, &rbacv1.ClusterRole{
		ObjectMeta: operatorMeta(""),
		Rules:      clusterRules(),
	}, child)
	if err != nil {
		return nil, err
	}
	clusterBinding, err := kube.Register(ctx, name, &rbacv1.ClusterRoleBinding{
		ObjectMeta: operatorMeta(""),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: operatorName},
		Subjects:   subjects,
	}, child, inNamespace, pulumi.DependsOn([]pulumi.Resource{clusterRole}))
	if err != nil {
		return nil, err
	}
	return []pulumi.Resource{binding, clusterBinding}, nil
}

// namespaceRules is what the operator does in its namespace.
func namespaceRules() []rbacv1.PolicyRule {
	watched := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{"nats.io"},
			Resources: []string{"natsclusters"},
			Verbs:     append([]string{"patch"}, watched...),
		},
		{
			APIGroups: []string{"nats.io"},
			Resources: []string{"natsserviceroles"},
			Verbs:     watched,
		},
		{
			APIGroups: []string{""},
			Resources: []string{"pods"},
			Verbs:     append([]string{"create", "delete", "patch", "update"}, watched...),
		},
		{
			APIGroups: []string{""},
			Resources: []string{"services", "secrets"},
			Verbs:     append([]string{"create", "update"}, watched...),
		},
		{
			// A server is told to finish its connections before its pod goes.
			APIGroups: []string{""},
			Resources: []string{"pods/exec"},
			Verbs:     []string{"create"},
		},
		{
			// The lock of its leader election.
			APIGroups: []string{""},
			Resources: []string{"endpoints"},
			Verbs:     []string{"create", "get", "update"},
		},
		{
			APIGroups: []string{""},
			Resources: []string{"events"},
			Verbs:     []string{"create", "patch"},
		},
	}
}

// clusterRules lets the operator look after its own two kinds. It does not
// create them, since the program does.
func clusterRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups:     []string{"apiextensions.k8s.io"},
		Resources:     []string{"customresourcedefinitions"},
		ResourceNames: []string{clusterKind.crd(), serviceRoleKind.crd()},
		Verbs:         []string{"get", "list", "update", "watch"},
	}}
}
