package nats

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/config"
	"persia/kube"
)

// rights returns exactly the rights that the operator needs in its namespace and in the cluster.
// sandbox/e2e compares them with the operator's requests.
func rights(scope config.OperatorScope) (role, clusterRole []rbacv1.PolicyRule) {
	if scope == config.ScopeCluster {
		return electionRules(), append(serverRules(), kindRules()...)
	}
	return append(serverRules(), electionRules()...), kindRules()
}

// serverRules allow the operator to create the servers of NatsClusters.
func serverRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		kube.Rule(group, []string{"list", "patch", "watch"}, clusterKind.plural),
		kube.Rule(group, []string{"list", "watch"}, serviceRoleKind.plural),
		kube.Rule("", []string{"create", "delete", "get", "list", "patch", "watch"}, "pods"),
		// The operator tells a server to send its clients to other servers before
		// it deletes the pod.
		kube.Rule("", []string{"create"}, "pods/exec"),
		// A new version changes the selector of the servers' service.
		kube.Rule("", []string{"create", "get", "list", "patch", "watch"}, "services"),
		// The servers' configuration.
		kube.Rule("", []string{"create", "get", "list", "update", "watch"}, "secrets"),
	}
}

// electionRules allow the operator to make sure that it is the only one.
func electionRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		kube.Rule("", []string{"create", "get", "update"}, "endpoints"),
		kube.Rule("", []string{"create"}, "events"),
	}
}

// kindRules allow the operator to manage its own two definitions, which it writes at
// each start. It does not create them, because the program does.
func kindRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{kube.RuleFor([]string{clusterKind.crd(), serviceRoleKind.crd()},
		"apiextensions.k8s.io", []string{"get", "list", "update", "watch"}, "customresourcedefinitions")}
}
