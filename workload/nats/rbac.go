package nats

import (
	rbacv1 "k8s.io/api/rbac/v1"

	settings "persia/config/nats"
)

// rights are what the operator may do in its namespace, and in the cluster: just
// what it does. sandbox/e2e compares them with what it asks for.
func rights(scope settings.Scope) (role, clusterRole []rbacv1.PolicyRule) {
	if scope == settings.ScopeCluster {
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
