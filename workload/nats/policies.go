package nats

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/config/natsspec"
	"persia/kube"
)

// registerPolicies registers who can reach the servers, and how many servers can be
// unavailable.
func registerPolicies(ctx *pulumi.Context, name string, args ClusterArgs, child pulumi.ResourceOption) error {
	if _, err := kube.Register(ctx, name, serverPolicy(args), child); err != nil {
		return err
	}
	_, err := kube.Register(ctx, name, disruptionBudget(args.NATS), child)
	return err
}

// disruptionBudget allows one server to be evicted at a time. It counts the servers
// that stay: for pods that a custom resource owns, Kubernetes does not know how many
// there should be, so a maximum of unavailable pods would forbid every eviction.
func disruptionBudget(nats natsspec.Settings) *policyv1.PodDisruptionBudget {
	stay := intstr.FromInt(nats.Size - 1)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: policyMeta(nats),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable:               &stay,
			UnhealthyPodEvictionPolicy: kube.EvictUnhealthy(),
			Selector:                   &metav1.LabelSelector{MatchLabels: serverLabels(nats)},
		},
	}
}

// serverPolicy admits clients, other servers, and the collectors of metrics. The
// kubelet's probes need no rule. A server connects only to other servers, which it
// looks up by name.
func serverPolicy(args ClusterArgs) *networkingv1.NetworkPolicy {
	servers := networkingv1.NetworkPolicyPeer{
		PodSelector: &metav1.LabelSelector{MatchLabels: serverLabels(args.NATS)},
	}
	clients := kube.Namespace(args.Clients.Namespace)
	clients.PodSelector = &args.Clients.Pods
	collectors := kube.Namespace(kube.CollectorNamespace)
	return &networkingv1.NetworkPolicy{
		ObjectMeta: policyMeta(args.NATS),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *servers.PodSelector,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: kube.Peers(clients), Ports: kube.TCP(clientPort)},
				{From: kube.Peers(servers), Ports: kube.TCP(routePort)},
				{From: kube.Peers(collectors), Ports: kube.TCP(monitoringPort, metricsPort)},
			},
			Egress: []networkingv1.NetworkPolicyEgressRule{
				{To: kube.Peers(servers), Ports: kube.TCP(routePort)},
				{Ports: kube.DNS()},
			},
		},
	}
}

func policyMeta(nats natsspec.Settings) metav1.ObjectMeta {
	return kube.Meta(Namespace, nats.Name, kube.Labels("nats", nats.Name))
}
