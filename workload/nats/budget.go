package nats

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/config"
	"persia/kube"
)

// disruptionBudget allows one server to be evicted at a time. It counts the servers
// that stay: for pods that a custom resource owns, Kubernetes does not know how many
// there should be, so a maximum of unavailable pods would forbid every eviction.
//
// It is also what waits for the servers, so that nothing else has to: Kubernetes writes into its
// status how many pods of the version are ready.
func disruptionBudget(nats config.NATS) *policyv1.PodDisruptionBudget {
	stay := intstr.FromInt(nats.Size - 1)
	meta := policyMeta(nats)
	meta.Annotations = map[string]string{"pulumi.com/waitFor": fmt.Sprintf("jsonpath={.status.currentHealthy}=%d", nats.Size)}
	pods := serverLabels(nats)
	pods[versionLabel] = nats.Version
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable:               &stay,
			UnhealthyPodEvictionPolicy: kube.EvictUnhealthy(),
			Selector:                   &metav1.LabelSelector{MatchLabels: pods},
		},
	}
}

// versionLabel is the label that the operator changes when it has upgraded a server.
const versionLabel = "nats_version"

// recreatedWith creates the budget after the NatsCluster, and recreates it when it must count other
// pods: the status of the old one would still count the previous pods.
func recreatedWith(servers pulumi.CustomResource) pulumi.ResourceOption {
	return pulumi.Composite(
		kube.After([]pulumi.CustomResource{servers}),
		pulumi.ReplaceWith([]pulumi.Resource{servers}),
		pulumi.DeleteBeforeReplace(true),
		pulumi.ReplaceOnChanges([]string{"spec.selector"}),
	)
}
