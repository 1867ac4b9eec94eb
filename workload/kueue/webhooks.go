package kueue

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/kube"
)

// Names that Kueue derives from the name of the Service, which ends with -webhook-service
// (pkg/util/cert/cert.go of v0.15.2).
const (
	serviceName       = controllerName + "-webhook-service"
	mutatingName      = controllerName + "-mutating-webhook-configuration"
	validatingName    = controllerName + "-validating-webhook-configuration"
	certificateName   = controllerName + "-webhook-server-cert"
	certificateFolder = "/etc/kueue-certificate"
)

// before returns the objects that must exist before Kueue starts: those that its pod mounts, and
// those through which the API server calls it.
func before(name, jobNamespace, config string) []kube.Named {
	labels := kube.Labels(controllerName, controllerName)
	return []kube.Named{
		{Resource: name, Object: &corev1.ConfigMap{
			ObjectMeta: kube.Meta(Namespace, controllerName, labels),
			Data:       map[string]string{"config.yaml": config},
		}},
		// Kueue writes its certificate into it.
		{Resource: name, Object: &corev1.Secret{ObjectMeta: kube.Meta(Namespace, certificateName, labels)}},
		{Resource: name + "-webhooks", Object: &networkingv1.NetworkPolicy{
			ObjectMeta: kube.Meta(Namespace, controllerName+"-webhooks", labels),
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": controllerName}},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				// No peer describes the control plane.
				Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: kube.TCP(webhookPort)}},
			},
		}},
		{Resource: name, Object: mutating(jobNamespace)},
		{Resource: name, Object: validating(jobNamespace)},
	}
}

func webhookService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: kube.Meta(Namespace, serviceName, kube.Labels(controllerName, controllerName)),
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app.kubernetes.io/name": controllerName},
			Ports:    []corev1.ServicePort{{Name: "webhooks", Port: 443, TargetPort: intstr.FromInt32(webhookPort)}},
		},
	}
}

// hook is a webhook of Kueue's module, config/components/webhook/manifests.yaml.
type hook struct {
	kind, group, version string
	resources            []string
	operations           []admissionv1.OperationType
}

func (h hook) path(verb string) string {
	group := map[string]string{kueueGroup: "kueue-x-k8s-io", jobSetGroup: "jobset-x-k8s-io"}[h.group]
	return fmt.Sprintf("/%s-%s-%s-%s", verb, group, h.version, h.kind)
}

const (
	kueueGroup    = "kueue.x-k8s.io"
	kueueVersion  = "v1beta2"
	jobSetGroup   = "jobset.x-k8s.io"
	jobSetVersion = "v1alpha2"
)

// The webhooks of the kinds that the program uses. Upstream's 17 others, for instance for
// each pod of the cluster, are left out.
var (
	onCreate = []admissionv1.OperationType{admissionv1.Create}
	onWrite  = []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}

	mutatingHooks = []hook{
		{"jobset", jobSetGroup, jobSetVersion, []string{"jobsets"}, onCreate},
		{"clusterqueue", kueueGroup, kueueVersion, []string{"clusterqueues"}, onCreate},
		{"resourceflavor", kueueGroup, kueueVersion, []string{"resourceflavors"}, onCreate},
		{"workload", kueueGroup, kueueVersion, []string{"workloads"}, onCreate},
	}
	validatingHooks = []hook{
		{"jobset", jobSetGroup, jobSetVersion, []string{"jobsets"}, onWrite},
		{"clusterqueue", kueueGroup, kueueVersion, []string{"clusterqueues"}, onWrite},
		{"cohort", kueueGroup, kueueVersion, []string{"cohorts"}, onWrite},
		{"resourceflavor", kueueGroup, kueueVersion, []string{"resourceflavors"}, onWrite},
		{"workload", kueueGroup, kueueVersion, []string{"workloads", "workloads/status"}, onWrite},
	}
)

func mutating(jobNamespace string) *admissionv1.MutatingWebhookConfiguration {
	configuration := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: kube.Meta("", mutatingName, kube.Labels(controllerName, controllerName)),
	}
	for _, h := range mutatingHooks {
		fail, none := admissionv1.Fail, admissionv1.SideEffectClassNone
		configuration.Webhooks = append(configuration.Webhooks, admissionv1.MutatingWebhook{
			Name:                    "m" + h.kind + ".kb.io",
			ClientConfig:            call(h.path("mutate")),
			Rules:                   h.rules(),
			FailurePolicy:           &fail,
			SideEffects:             &none,
			NamespaceSelector:       in(jobNamespace),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return configuration
}

func validating(jobNamespace string) *admissionv1.ValidatingWebhookConfiguration {
	configuration := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: kube.Meta("", validatingName, kube.Labels(controllerName, controllerName)),
	}
	for _, h := range validatingHooks {
		fail, none := admissionv1.Fail, admissionv1.SideEffectClassNone
		configuration.Webhooks = append(configuration.Webhooks, admissionv1.ValidatingWebhook{
			Name:                    "v" + h.kind + ".kb.io",
			ClientConfig:            call(h.path("validate")),
			Rules:                   h.rules(),
			FailurePolicy:           &fail,
			SideEffects:             &none,
			NamespaceSelector:       in(jobNamespace),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return configuration
}

func (h hook) rules() []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{
		Operations: h.operations,
		Rule:       admissionv1.Rule{APIGroups: []string{h.group}, APIVersions: []string{h.version}, Resources: h.resources},
	}}
}

func call(path string) admissionv1.WebhookClientConfig {
	return admissionv1.WebhookClientConfig{
		Service: &admissionv1.ServiceReference{Namespace: Namespace, Name: serviceName, Path: &path},
	}
}

// in selects one namespace. Objects without a namespace are always selected. The webhooks fail
// closed, so in any other namespace a Kueue that does not run refuses nothing.
func in(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
}
