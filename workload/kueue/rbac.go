package kueue

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/kube"
)

var (
	read   = []string{"get", "list", "watch"}
	manage = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
)

// rights returns the rights that Kueue needs in its own namespace and in the cluster: the subset of
// upstream's rules (config/components/rbac) for the enabled features and kinds of jobs.
func rights() (role, clusterRole []rbacv1.PolicyRule) {
	role = []rbacv1.PolicyRule{
		kube.Rule("", []string{"get", "list", "update", "watch"}, "secrets"),
	}
	clusterRole = []rbacv1.PolicyRule{
		kube.Rule("", []string{"create", "patch", "update"}, "events"),
		kube.Rule("", read, "limitranges", "namespaces"),
		// It watches these, but only a queue with an AdmissionCheck would have it write them.
		kube.Rule("", read, "podtemplates"),
		kube.Rule("autoscaling.x-k8s.io", read, "provisioningrequests"),
		kube.Rule("node.k8s.io", read, "runtimeclasses"),
		kube.Rule("scheduling.k8s.io", read, "priorityclasses"),
		// Kueue writes its certificate into its webhooks and definitions.
		kube.Rule("admissionregistration.k8s.io", []string{"get", "list", "watch"}, "mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
		kube.RuleFor([]string{mutatingName}, "admissionregistration.k8s.io", []string{"update"}, "mutatingwebhookconfigurations"),
		kube.RuleFor([]string{validatingName}, "admissionregistration.k8s.io", []string{"update"}, "validatingwebhookconfigurations"),
		kube.Rule("apiextensions.k8s.io", read, "customresourcedefinitions"),
		kube.RuleFor(converted, "apiextensions.k8s.io", []string{"update"}, "customresourcedefinitions"),
		kube.Rule(jobSetGroup, manage[1:], "jobsets"),
		kube.Rule(jobSetGroup, []string{"get", "patch", "update"}, "jobsets/status"),
		kube.Rule(jobSetGroup, []string{"get", "update"}, "jobsets/finalizers"),
		kube.Rule(kueueGroup, manage, "admissionchecks", "clusterqueues", "cohorts", "localqueues", "workloads"),
		kube.Rule(kueueGroup, []string{"delete", "get", "list", "update", "watch"}, "resourceflavors"),
		kube.Rule(kueueGroup, read, "provisioningrequestconfigs", "workloadpriorityclasses"),
		kube.Rule(kueueGroup, []string{"update"}, "admissionchecks/finalizers", "clusterqueues/finalizers",
			"localqueues/finalizers", "resourceflavors/finalizers", "workloads/finalizers"),
		kube.Rule(kueueGroup, []string{"get", "patch", "update"}, "admissionchecks/status", "clusterqueues/status",
			"cohorts/status", "localqueues/status", "workloads/status"),
	}
	return role, clusterRole
}

// converted are the definitions into which Kueue writes its certificate
// (pkg/util/cert/cert.go of v0.15.2).
var converted = []string{
	"clusterqueues." + kueueGroup, "cohorts." + kueueGroup, "localqueues." + kueueGroup, "workloads." + kueueGroup,
}
