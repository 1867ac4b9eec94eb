package kube

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// WebhookPort is the kubelet's. GKE opens only this port and 443 between the control plane and the
// nodes of a private cluster, and a container that is not root cannot use 443.
const WebhookPort = 10250

// HealthPort is the port of the probes of an operator with webhooks. Its name is health.
const HealthPort = 8081

// Webhooks describes the webhooks of an operator, which listens on [WebhookPort]. They fail closed,
// but only for objects in one namespace or in none: elsewhere, an operator that does not run
// refuses nothing.
type Webhooks struct {
	// Service is the name of the Service through which the API server calls the operator.
	Service string
	// ObjectNamespace has the objects that the webhooks check.
	ObjectNamespace string
	// Mutating and Validating are configurations into which the operator writes its certificate.
	Mutating, Validating WebhookConfiguration
}

// WebhookConfiguration is a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration.
type WebhookConfiguration struct {
	// Resource is the name of its resource in Pulumi.
	Resource string
	Name     string
	Webhooks []Webhook
}

// Webhook is one webhook of a kind. Its name and its path follow from the kind, by the conventions of
// kubebuilder.
type Webhook struct {
	Kind, Group, Version string
	Resources            []string
	Operations           []admissionv1.OperationType
}

func (w Webhook) name(configuration string) string { return configuration[:1] + w.Kind + ".kb.io" }

func (w Webhook) path(configuration string) string {
	return fmt.Sprintf("/%s-%s-%s-%s", configuration, strings.ReplaceAll(w.Group, ".", "-"), w.Version, w.Kind)
}

func (w Webhook) rules() []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{
		Operations: w.Operations,
		Rule:       admissionv1.Rule{APIGroups: []string{w.Group}, APIVersions: []string{w.Version}, Resources: w.Resources},
	}}
}

// The operations of webhooks.
var (
	OnCreate = []admissionv1.OperationType{admissionv1.Create}
	OnWrite  = []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
)

// ObjectsIn selects one namespace by the label that Kubernetes gives it. Objects without a namespace
// are always selected.
func ObjectsIn(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
}

// webhookObjects returns the objects that exist before an operator with webhooks starts.
func (o OperatorArgs) webhookObjects() []Named {
	if o.Webhooks == nil {
		return nil
	}
	w := *o.Webhooks
	fail, none := admissionv1.Fail, admissionv1.SideEffectClassNone
	mutating := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: Meta("", w.Mutating.Name, o.labels())}
	for _, hook := range w.Mutating.Webhooks {
		mutating.Webhooks = append(mutating.Webhooks, admissionv1.MutatingWebhook{
			Name:                    hook.name("mutate"),
			ClientConfig:            o.call(hook.path("mutate")),
			Rules:                   hook.rules(),
			FailurePolicy:           &fail,
			SideEffects:             &none,
			NamespaceSelector:       ObjectsIn(w.ObjectNamespace),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	validating := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: Meta("", w.Validating.Name, o.labels())}
	for _, hook := range w.Validating.Webhooks {
		validating.Webhooks = append(validating.Webhooks, admissionv1.ValidatingWebhook{
			Name:                    hook.name("validate"),
			ClientConfig:            o.call(hook.path("validate")),
			Rules:                   hook.rules(),
			FailurePolicy:           &fail,
			SideEffects:             &none,
			NamespaceSelector:       ObjectsIn(w.ObjectNamespace),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return []Named{
		{Resource: o.Name + "-webhooks", Object: o.webhookPolicy()},
		{Resource: w.Mutating.Resource, Object: mutating},
		{Resource: w.Validating.Resource, Object: validating},
	}
}

func (o OperatorArgs) call(path string) admissionv1.WebhookClientConfig {
	return admissionv1.WebhookClientConfig{
		Service: &admissionv1.ServiceReference{Namespace: o.Namespace, Name: o.Webhooks.Service, Path: &path},
	}
}

// webhookPolicy lets the API server reach the webhooks. No peer describes a control plane.
func (o OperatorArgs) webhookPolicy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: Meta(o.Namespace, o.Name+"-webhooks", o.labels()),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *o.selector(),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: TCP(WebhookPort)}},
		},
	}
}

func (o OperatorArgs) webhookService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: Meta(o.Namespace, o.Webhooks.Service, o.labels()),
		Spec: corev1.ServiceSpec{
			Selector: o.selector().MatchLabels,
			Ports:    []corev1.ServicePort{{Name: "webhooks", Port: 443, TargetPort: intstr.FromInt32(WebhookPort)}},
		},
	}
}
