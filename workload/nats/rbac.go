package nats

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/config"
	"persia/kube"
)

// grantRights lets the operator look after servers, in its namespace or in all, and
// after its two kinds, by name.
func grantRights(ctx *pulumi.Context, name string, scope config.OperatorScope, child, inNamespace pulumi.ResourceOption) ([]pulumi.CustomResource, error) {
	inOne, inAll := rights(scope)
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: Namespace, Name: operatorName}}

	role, err := kube.Register(ctx, name, &rbacv1.Role{
		ObjectMeta: operatorMeta(Namespace),
		Rules:      inOne,
	}, child, inNamespace)
	if err != nil {
		return nil, err
	}
	binding, err := kube.Register(ctx, name, &rbacv1.RoleBinding{
		ObjectMeta: operatorMeta(Namespace),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: operatorName},
		Subjects:   subjects,
	}, child, kube.After([]pulumi.CustomResource{role}))
	if err != nil {
		return nil, err
	}
	clusterRole, err := kube.Register(ctx, name, &rbacv1.ClusterRole{
		ObjectMeta: operatorMeta(""),
		Rules:      inAll,
	}, child)
	if err != nil {
		return nil, err
	}
	clusterBinding, err := kube.Register(ctx, name, &rbacv1.ClusterRoleBinding{
		ObjectMeta: operatorMeta(""),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: operatorName},
		Subjects:   subjects,
	}, child, inNamespace, kube.After([]pulumi.CustomResource{clusterRole}))
	if err != nil {
		return nil, err
	}
	return []pulumi.CustomResource{binding, clusterBinding}, nil
}

// rights are what the operator may do in its namespace, and in the cluster: just
// what it does. sandbox/e2e compares them with what it asks for.
func rights(scope config.OperatorScope) (inOne, inAll []rbacv1.PolicyRule) {
	if scope == config.ScopeCluster {
		return electionRules(), append(serverRules(), kindRules()...)
	}
	return append(serverRules(), electionRules()...), kindRules()
}

// serverRules let the operator make servers of NatsClusters.
func serverRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{group},
			Resources: []string{clusterKind.plural},
			Verbs:     []string{"list", "patch", "watch"},
		},
		{
			APIGroups: []string{group},
			Resources: []string{serviceRoleKind.plural},
			Verbs:     []string{"list", "watch"},
		},
		{
			APIGroups: []string{""},
			Resources: []string{"pods"},
			Verbs:     []string{"create", "delete", "get", "list", "patch", "watch"},
		},
		{
			// A server is told to send its clients to others before its pod goes.
			APIGroups: []string{""},
			Resources: []string{"pods/exec"},
			Verbs:     []string{"create"},
		},
		{
			// A new version changes the selector of the servers' service.
			APIGroups: []string{""},
			Resources: []string{"services"},
			Verbs:     []string{"create", "get", "list", "patch", "watch"},
		},
		{
			// The servers' configuration.
			APIGroups: []string{""},
			Resources: []string{"secrets"},
			Verbs:     []string{"create", "get", "list", "update", "watch"},
		},
	}
}

// electionRules let the operator see that it is the only one.
func electionRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{""},
			Resources: []string{"endpoints"},
			Verbs:     []string{"create", "get", "update"},
		},
		{
			APIGroups: []string{""},
			Resources: []string{"events"},
			Verbs:     []string{"create"},
		},
	}
}

// kindRules let the operator look after its own two kinds, which it writes at each
// start. It does not create them, since the program does.
func kindRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups:     []string{"apiextensions.k8s.io"},
		Resources:     []string{"customresourcedefinitions"},
		ResourceNames: []string{clusterKind.crd(), serviceRoleKind.crd()},
		Verbs:         []string{"get", "list", "update", "watch"},
	}}
}
