package kueue

import (
	corev1 "k8s.io/api/core/v1"

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

// before returns the objects that the pod mounts.
func before(name, config string) []kube.Named {
	labels := kube.Labels(controllerName, controllerName)
	return []kube.Named{
		{Resource: name, Object: &corev1.ConfigMap{
			ObjectMeta: kube.Meta(Namespace, controllerName, labels),
			Data:       map[string]string{"config.yaml": config},
		}},
		// Kueue writes its certificate into it.
		{Resource: name, Object: &corev1.Secret{ObjectMeta: kube.Meta(Namespace, certificateName, labels)}},
	}
}

const (
	kueueGroup    = "kueue.x-k8s.io"
	kueueVersion  = "v1beta2"
	jobSetGroup   = "jobset.x-k8s.io"
	jobSetVersion = "v1alpha2"
)

// webhooks returns the webhooks of the kinds that the program uses, as in
// config/components/webhook/manifests.yaml of Kueue. Upstream's 17 others, for instance for each pod
// of the cluster, are left out.
func webhooks(name, jobNamespace string) *kube.Webhooks {
	return &kube.Webhooks{
		Service:         serviceName,
		ObjectNamespace: jobNamespace,
		Mutating: kube.WebhookConfiguration{Resource: name, Name: mutatingName, Webhooks: []kube.Webhook{
			{Kind: "jobset", Group: jobSetGroup, Version: jobSetVersion, Resources: []string{"jobsets"}, Operations: kube.OnCreate},
			{Kind: "clusterqueue", Group: kueueGroup, Version: kueueVersion, Resources: []string{"clusterqueues"}, Operations: kube.OnCreate},
			{Kind: "resourceflavor", Group: kueueGroup, Version: kueueVersion, Resources: []string{"resourceflavors"}, Operations: kube.OnCreate},
			{Kind: "workload", Group: kueueGroup, Version: kueueVersion, Resources: []string{"workloads"}, Operations: kube.OnCreate},
		}},
		Validating: kube.WebhookConfiguration{Resource: name, Name: validatingName, Webhooks: []kube.Webhook{
			{Kind: "jobset", Group: jobSetGroup, Version: jobSetVersion, Resources: []string{"jobsets"}, Operations: kube.OnWrite},
			{Kind: "clusterqueue", Group: kueueGroup, Version: kueueVersion, Resources: []string{"clusterqueues"}, Operations: kube.OnWrite},
			{Kind: "cohort", Group: kueueGroup, Version: kueueVersion, Resources: []string{"cohorts"}, Operations: kube.OnWrite},
			{Kind: "resourceflavor", Group: kueueGroup, Version: kueueVersion, Resources: []string{"resourceflavors"}, Operations: kube.OnWrite},
			{Kind: "workload", Group: kueueGroup, Version: kueueVersion, Resources: []string{"workloads", "workloads/status"}, Operations: kube.OnWrite},
		}},
	}
}
