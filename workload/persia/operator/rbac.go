package operator

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/workload/persia/operator/persiav1"
)

// jobRules let the operator follow the jobs of all namespaces, which it lists, and hold and release them by a finalizer.
func jobRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{persiav1.Group},
		Resources: []string{persiav1.Plural},
		Verbs:     []string{"list", "patch", "watch"},
	}}
}

// podRules let the operator create and delete the objects of a job in one namespace.
func podRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{""},
		Resources: []string{"pods", "services"},
		Verbs:     []string{"create", "delete", "list"},
	}}
}
