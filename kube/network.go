package kube

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CollectorNamespace is where GKE runs Managed Service for Prometheus.
const CollectorNamespace = "gmp-system"

// Closed returns a policy that lets no pod of a namespace speak with anybody, but for what other policies allow.
func Closed(meta metav1.ObjectMeta) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{PolicyTypes: BothWays()}}
}

// BothWays returns the types of a policy for what pods receive and send.
func BothWays() []networkingv1.PolicyType {
	return []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
}

// Namespace returns a peer that selects all pods of a namespace.
func Namespace(name string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{corev1.LabelMetadataName: name},
	}}
}

// Peers returns the peers of a rule in a NetworkPolicy.
func Peers(peers ...networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyPeer { return peers }

// TCP returns the TCP ports that a rule of a NetworkPolicy opens.
func TCP(numbers ...int32) []networkingv1.NetworkPolicyPort {
	var ports []networkingv1.NetworkPolicyPort
	for _, number := range numbers {
		ports = append(ports, policyPort(corev1.ProtocolTCP, number))
	}
	return ports
}

// ToAPIServer allows pods to connect to the API server. GKE's API server listens on port 443, others on 6443.
func ToAPIServer() []networkingv1.NetworkPolicyEgressRule {
	return []networkingv1.NetworkPolicyEgressRule{{Ports: TCP(443, 6443)}}
}

// DNS returns the ports of name servers, which are pods or each node's metadata server.
func DNS() []networkingv1.NetworkPolicyPort {
	return append(TCP(53), policyPort(corev1.ProtocolUDP, 53))
}

func policyPort(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(number))}
}

// ServicePort returns a port of a Service whose pods listen on the same number. It sets the target port, because the
// API server would otherwise fill it in, and every plan would remove it again.
func ServicePort(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: intstr.FromInt32(number)}
}
