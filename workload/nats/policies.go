package nats

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/kube"
)

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

func policyMeta(nats config.NATS) metav1.ObjectMeta {
	return kube.Meta(Namespace, nats.Name, kube.Labels("nats", nats.Name))
}
