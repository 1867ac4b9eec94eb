package kube

import "slices"

// GKEWebhook is an admission webhook that GKE installs in a cluster of its own accord.
type GKEWebhook struct {
	// Name is the name of its configuration.
	Name string
	// Groups are the API groups of the objects that pass it. "" has the core ones.
	Groups []string
	// OnNodes reports that pods on the nodes of the cluster serve it, so that a new cluster, whose
	// nodes run no pod yet, refuses these objects. The others are served by the control plane, at
	// https://localhost:5443 (kubeflow/kubeflow, issue 7685), and serve when it does.
	OnNodes bool
}

// GKEWebhooks returns the webhooks of a Standard cluster, as `kubectl get
// validatingwebhookconfigurations,mutatingwebhookconfigurations` lists them in public logs of GKE 1.2x
// and 1.3x.
//
// An object of the program that passes a webhook on the nodes must come after a Deployment that is
// available, which shows that the nodes run pods: give it [After]. Pods, and what a controller creates,
// need no order: the controller tries again when a webhook refuses. JobSet, Kueue and the NATS operator
// come from the program itself, whose objects of their kinds depend on their Deployments.
func GKEWebhooks() []GKEWebhook {
	const common = ".config.common-webhooks.networking.gke.io"
	workloads, pods := []string{"", "apps", "batch"}, []string{""}
	return []GKEWebhook{
		// GoogleCloudPlatform/ai-on-gke, issue 402: no endpoints available for service "gmp-operator".
		{Name: "gmp-operator.gmp-system.monitoring.googleapis.com", Groups: []string{"monitoring.googleapis.com"}, OnNodes: true},
		{Name: "warden-validating" + common, Groups: workloads},
		{Name: "warden-mutating" + common, Groups: workloads},
		{Name: "flowcontrol-guardrails" + common, Groups: []string{"flowcontrol.apiserver.k8s.io"}},
		{Name: "neg-annotation" + common, Groups: pods},
		{Name: "nodelimit" + common, Groups: pods},
		{Name: "pod-ready" + common, Groups: pods},
		// The program creates no snapshots.
		{Name: "validation-webhook.snapshot.storage.k8s.io", Groups: []string{"snapshot.storage.k8s.io"}},
	}
}

// WebhookOnNodes returns the webhook on the nodes that objects of an API group pass, if there is one.
func WebhookOnNodes(group string) (GKEWebhook, bool) {
	for _, webhook := range GKEWebhooks() {
		if webhook.OnNodes && slices.Contains(webhook.Groups, group) {
			return webhook, true
		}
	}
	return GKEWebhook{}, false
}
