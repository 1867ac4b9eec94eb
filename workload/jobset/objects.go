package jobset

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/kube"
)

// The names of the webhook configurations are constants of the controller, which writes its
// certificate into them.
const (
	validatingName = "jobset-validating-webhook-configuration"
	mutatingName   = "jobset-mutating-webhook-configuration"
)

// before returns the objects that the controller finds when it starts.
func before() []kube.Named {
	role, binding := certificateRights()
	return []kube.Named{
		{Resource: settingsName, Object: &corev1.ConfigMap{
			ObjectMeta: meta(Namespace, settingsName),
			Data:       map[string]string{settingsFile: settings},
		}},
		// The controller fills it.
		{Resource: certificateName, Object: &corev1.Secret{ObjectMeta: meta(Namespace, certificateName)}},
		{Resource: role.Name, Object: role},
		{Resource: binding.Name, Object: binding},
	}
}

func meta(namespace, name string) metav1.ObjectMeta {
	return kube.Meta(namespace, name, kube.Labels(controllerName, controllerName))
}

// webhooks returns the webhooks of JobSets. JobSet's webhooks for pods are left out: they serve
// exclusive placement, which no job requests, and with them the substitute of a lost pod would need
// the controller.
func webhooks(jobNamespace string) *kube.Webhooks {
	on := func(operations []admissionv1.OperationType) []kube.Webhook {
		return []kube.Webhook{{Kind: "jobset", Group: group, Version: version, Resources: []string{"jobsets"}, Operations: operations}}
	}
	return &kube.Webhooks{
		Service:         serviceName,
		ObjectNamespace: jobNamespace,
		Mutating:        kube.WebhookConfiguration{Resource: mutatingName, Name: mutatingName, Webhooks: on(kube.OnCreate)},
		Validating:      kube.WebhookConfiguration{Resource: validatingName, Name: validatingName, Webhooks: on(kube.OnWrite)},
	}
}

// jobRules returns the controller's rights in the namespace of jobs.
func jobRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		kube.Rule(group, []string{"get", "patch", "update"}, "jobsets/status"),
		kube.Rule(group, []string{"update"}, "jobsets/finalizers"),
		kube.Rule("batch", []string{"create", "delete", "patch", "update"}, "jobs"),
		kube.Rule("batch", []string{"get", "patch", "update"}, "jobs/status"),
		kube.Rule("", []string{"create"}, "services"),
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

// clusterRules returns the controller's rights in the cluster: it watches all namespaces, and
// writes its certificate into its webhooks.
func clusterRules() []rbacv1.PolicyRule {
	watch := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		kube.Rule(group, watch, "jobsets"),
		kube.Rule("batch", watch, "jobs"),
		kube.Rule("", watch, "pods", "services"),
		kube.Rule(admissionv1.GroupName, []string{"list", "watch"}, "mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
		kube.RuleFor([]string{mutatingName}, admissionv1.GroupName, []string{"get", "update"}, "mutatingwebhookconfigurations"),
		kube.RuleFor([]string{validatingName}, admissionv1.GroupName, []string{"get", "update"}, "validatingwebhookconfigurations"),
	}
}

// certificateRights let the controller keep its certificate.
func certificateRights() (*rbacv1.Role, *rbacv1.RoleBinding) {
	const name = controllerName + "-certificate"
	role := &rbacv1.Role{
		ObjectMeta: meta(Namespace, name),
		Rules: []rbacv1.PolicyRule{
			kube.Rule("", []string{"list", "watch"}, "secrets"),
			kube.RuleFor([]string{certificateName}, "", []string{"get", "update"}, "secrets"),
		},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta(Namespace, name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: Namespace, Name: controllerName}},
	}
	return role, binding
}
