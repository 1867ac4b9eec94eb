package nats

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/config/natsspec"
)

// rights returns exactly the rights that the operator needs in its namespace and in the cluster.
// sandbox/e2e compares them with the operator's requests.
func rights(scope natsspec.Scope) (role, clusterRole []rbacv1.PolicyRule) {
	if scope == natsspec.ScopeCluster {
		return electionRules(), append(serverRules(), kindRules()...)
	}
	return append(serverRules(), electionRules()...), kindRules()
}

// serverRules allow the operator to create the servers of NatsClusters.
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
			// The operator tells a server to send its clients to other servers before
			// it deletes the pod.
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

// electionRules allow the operator to make sure that it is the only one.
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

// kindRules allow the operator to manage its own two definitions, which it writes at
// each start. It does not create them, because the program does.
func kindRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups:     []string{"apiextensions.k8s.io"},
		Resources:     []string{"customresourcedefinitions"},
		ResourceNames: []string{clusterKind.crd(), serviceRoleKind.crd()},
		Verbs:         []string{"get", "list", "update", "watch"},
	}}
}
