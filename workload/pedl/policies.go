package pedl

import (
	"fmt"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/kube"
)

// masterPolicy lets everyone connect to the master's port: trials connect from the address of a
// node, and users through a load balancer or an Ingress. The master connects only to its database.
func masterPolicy(database connection) *networkingv1.NetworkPolicy {
	return policy(NamespaceName, masterName, selector(masterName),
		[]networkingv1.NetworkPolicyIngressRule{{Ports: kube.TCP(masterPort)}},
		[]networkingv1.NetworkPolicyEgressRule{
			{To: database.peers(), Ports: kube.TCP(database.podPort())},
			{Ports: kube.DNS()},
		})
}

// peers returns the database's pods, or its address. A NetworkPolicy cannot match a host name.
func (c connection) peers() []networkingv1.NetworkPolicyPeer {
	address, err := netip.ParseAddr(c.host)
	switch {
	case !c.external:
		return kube.Peers(networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: selector(databaseName)}})
	case err != nil:
		return nil
	default:
		cidr := fmt.Sprintf("%s/%d", c.host, address.BitLen())
		return kube.Peers(networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr}})
	}
}

// podPort returns the port of the database's pods, which policies match, and not of its Service.
func (c connection) podPort() int32 {
	if c.external {
		return int32(c.port)
	}
	return postgreSQLPort
}

// databasePolicy lets the master in, and with external addresses everybody.
func databasePolicy(service config.DatabaseService) *networkingv1.NetworkPolicy {
	from := kube.Peers(networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: selector(masterName)}})
	if len(service.ExternalIPs) > 0 {
		from = nil
	}
	return policy(NamespaceName, databaseName, selector(databaseName),
		[]networkingv1.NetworkPolicyIngressRule{{From: from, Ports: kube.TCP(postgreSQLPort)}}, nil)
}

// agentPolicy lets agents go to the master.
func agentPolicy() *networkingv1.NetworkPolicy {
	master := kube.Namespace(NamespaceName)
	master.PodSelector = &metav1.LabelSelector{MatchLabels: selector(masterName)}
	return policy(AgentNamespaceName, agentName, selector(agentName), nil,
		[]networkingv1.NetworkPolicyEgressRule{
			{To: kube.Peers(master), Ports: kube.TCP(masterPort)},
			{Ports: kube.DNS()},
		})
}

func policy(namespace, name string, pods map[string]string, in []networkingv1.NetworkPolicyIngressRule,
	out []networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(namespace, name, "pedl"),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: pods},
			PolicyTypes: kube.BothWays(),
			Ingress:     in,
			Egress:      out,
		},
	}
}
