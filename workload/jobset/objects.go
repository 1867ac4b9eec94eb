package jobset

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/kube"
)

// The names of the webhook configurations are constants of the controller, which writes its
// certificate into them.
const (
	validatingName = "jobset-validating-webhook-configuration"
	mutatingName   = "jobset-mutating-webhook-configuration"
)

// before returns the objects that the controller finds when it starts.
func before(jobNamespace string) []kube.Named {
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
		{Resource: controllerName + "-webhooks", Object: webhookPolicy()},
		{Resource: mutatingName, Object: mutating(jobNamespace)},
		{Resource: validatingName, Object: validating(jobNamespace)},
	}
}

func meta(namespace, name string) metav1.ObjectMeta {
	return kube.Meta(namespace, name, kube.Labels(controllerName, controllerName))
}

// webhookPolicy lets the API server reach the webhooks. No policy can name a control plane.
func webhookPolicy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(Namespace, controllerName+"-webhooks"),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": controllerName}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: kube.TCP(webhookPort)}},
		},
	}
}

func webhookService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: meta(Namespace, serviceName),
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app.kubernetes.io/name": controllerName},
			Ports:    []corev1.ServicePort{{Name: "webhooks", Port: 443, TargetPort: intstr.FromInt32(webhookPort)}},
		},
	}
}

// webhook has the fields that both kinds of webhooks share. JobSet's webhooks for pods are left
// out: they serve exclusive placement, which no job requests, and with them the substitute of a lost
// pod would need the controller.
type webhook struct {
	name, path string
	operations []admissionv1.OperationType
}

func (w webhook) client() admissionv1.WebhookClientConfig {
	return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: Namespace, Name: serviceName, Path: &w.path}}
}

func (w webhook) rules() []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{
		Operations: w.operations,
		Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1alpha2"}, Resources: []string{"jobsets"}},
	}}
}

func mutating(jobNamespace string) *admissionv1.MutatingWebhookConfiguration {
	w := webhook{"mjobset.kb.io", "/mutate-jobset-x-k8s-io-v1alpha2-jobset", []admissionv1.OperationType{admissionv1.Create}}
	fail, none := admissionv1.Fail, admissionv1.SideEffectClassNone
	return &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: meta("", mutatingName),
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: w.name, ClientConfig: w.client(), Rules: w.rules(), FailurePolicy: &fail, SideEffects: &none,
			AdmissionReviewVersions: []string{"v1"}, NamespaceSelector: only(jobNamespace),
		}},
	}
}

func validating(jobNamespace string) *admissionv1.ValidatingWebhookConfiguration {
	w := webhook{"vjobset.kb.io", "/validate-jobset-x-k8s-io-v1alpha2-jobset", []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}}
	fail, none := admissionv1.Fail, admissionv1.SideEffectClassNone
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: meta("", validatingName),
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: w.name, ClientConfig: w.client(), Rules: w.rules(), FailurePolicy: &fail, SideEffects: &none,
			AdmissionReviewVersions: []string{"v1"}, NamespaceSelector: only(jobNamespace),
		}},
	}
}

// only selects a namespace by the label that Kubernetes gives it.
func only(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
}

// jobRules returns the controller's rights in the namespace of jobs.
func jobRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{"jobsets/status"}, Verbs: []string{"get", "patch", "update"}},
		{APIGroups: []string{group}, Resources: []string{"jobsets/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "delete", "patch", "update"}},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs/status"}, Verbs: []string{"get", "patch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"create"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

// clusterRules returns the controller's rights in the cluster: it watches all namespaces, and
// writes its certificate into its webhooks.
func clusterRules() []rbacv1.PolicyRule {
	watch := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{"jobsets"}, Verbs: watch},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: watch},
		{APIGroups: []string{""}, Resources: []string{"pods", "services"}, Verbs: watch},
		{APIGroups: []string{admissionv1.GroupName}, Resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{admissionv1.GroupName}, Resources: []string{"mutatingwebhookconfigurations"}, ResourceNames: []string{mutatingName}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{admissionv1.GroupName}, Resources: []string{"validatingwebhookconfigurations"}, ResourceNames: []string{validatingName}, Verbs: []string{"get", "update"}},
	}
}

// certificateRights let the controller keep its certificate.
func certificateRights() (*rbacv1.Role, *rbacv1.RoleBinding) {
	const name = controllerName + "-certificate"
	role := &rbacv1.Role{
		ObjectMeta: meta(Namespace, name),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{certificateName}, Verbs: []string{"get", "update"}},
		},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta(Namespace, name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: Namespace, Name: controllerName}},
	}
	return role, binding
}
