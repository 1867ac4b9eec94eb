package operator

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/kube"
	"persia/workload/persia/operator/persiav1"
)

// jobRules let the operator follow the jobs of all namespaces, which it lists, and hold and release them by a finalizer.
func jobRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{kube.Rule(persiav1.Group, []string{"list", "patch", "watch"}, persiav1.Plural)}
}

// podRules let the operator create and delete the objects of a job in one namespace.
func podRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{kube.Rule("", []string{"create", "delete", "list"}, "pods", "services")}
}
