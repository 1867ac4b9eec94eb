package kueue

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

var (
	read   = []string{"get", "list", "watch"}
	manage = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
)

// rights returns the rights that Kueue needs in its own namespace and in the cluster: the subset of
// upstream's rules (config/components/rbac) for the enabled features and kinds of jobs.
func rights() (role, clusterRole []rbacv1.PolicyRule) {
	role = []rbacv1.PolicyRule{
		rule("", []string{"get", "list", "update", "watch"}, "secrets"),
		rule("coordination.k8s.io", manage, "leases"),
	}
	clusterRole = []rbacv1.PolicyRule{
		rule("", []string{"create", "patch", "update"}, "events"),
		rule("", read, "limitranges", "namespaces"),
		// A ProvisioningRequest names the template of its pods.
		rule("", manage, "podtemplates"),
		rule("autoscaling.x-k8s.io", manage, "provisioningrequests"),
		rule("autoscaling.x-k8s.io", []string{"get"}, "provisioningrequests/status"),
		rule("node.k8s.io", read, "runtimeclasses"),
		rule("scheduling.k8s.io", read, "priorityclasses"),
		// Kueue writes its certificate into its webhooks and definitions.
		rule("admissionregistration.k8s.io", []string{"get", "list", "watch"}, "mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
		named(rule("admissionregistration.k8s.io", []string{"update"}, "mutatingwebhookconfigurations"), mutatingName),
		named(rule("admissionregistration.k8s.io", []string{"update"}, "validatingwebhookconfigurations"), validatingName),
		rule("apiextensions.k8s.io", read, "customresourcedefinitions"),
		named(rule("apiextensions.k8s.io", []string{"update"}, "customresourcedefinitions"), converted...),
		rule(jobSetGroup, manage[1:], "jobsets"),
		rule(jobSetGroup, []string{"get", "patch", "update"}, "jobsets/status"),
		rule(jobSetGroup, []string{"get", "update"}, "jobsets/finalizers"),
		rule(kueueGroup, manage, "admissionchecks", "clusterqueues", "cohorts", "localqueues", "workloads"),
		rule(kueueGroup, []string{"delete", "get", "list", "update", "watch"}, "resourceflavors"),
		rule(kueueGroup, read, "provisioningrequestconfigs", "workloadpriorityclasses"),
		rule(kueueGroup, []string{"update"}, "admissionchecks/finalizers", "clusterqueues/finalizers",
			"localqueues/finalizers", "resourceflavors/finalizers", "workloads/finalizers"),
		rule(kueueGroup, []string{"get", "patch", "update"}, "admissionchecks/status", "clusterqueues/status",
			"cohorts/status", "localqueues/status", "workloads/status"),
	}
	return role, clusterRole
}

// converted are the definitions into which Kueue writes its certificate
// (pkg/util/cert/cert.go of v0.15.2).
var converted = []string{
	"clusterqueues." + kueueGroup, "cohorts." + kueueGroup, "localqueues." + kueueGroup, "workloads." + kueueGroup,
}

func rule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

func named(rule rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	rule.ResourceNames = names
	return rule
}
