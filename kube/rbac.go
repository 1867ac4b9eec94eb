package kube

import rbacv1 "k8s.io/api/rbac/v1"

// Rule returns a rule that allows verbs on resources of an API group.
func Rule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// RuleFor is [Rule] for the objects with some names only.
func RuleFor(names []string, group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	rule := Rule(group, verbs, resources...)
	rule.ResourceNames = names
	return rule
}
