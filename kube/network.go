package kube

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CollectorNamespace is where GKE runs Managed Service for Prometheus.
const CollectorNamespace = "gmp-system"

// Namespace are all pods of a namespace, for a NetworkPolicy.
func Namespace(name string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{corev1.LabelMetadataName: name},
	}}
}

// Peers are who a rule of a NetworkPolicy is about.
func Peers(peers ...networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyPeer { return peers }

// TCP are ports that a NetworkPolicy opens.
func TCP(numbers ...int32) []networkingv1.NetworkPolicyPort {
	var ports []networkingv1.NetworkPolicyPort
	for _, number := range numbers {
		ports = append(ports, policyPort(corev1.ProtocolTCP, number))
	}
	return ports
}

// ToAPIServer lets pods talk to the API server. GKE's listens on 443, and that of other
// clusters on 6443.
func ToAPIServer() []networkingv1.NetworkPolicyEgressRule {
	return []networkingv1.NetworkPolicyEgressRule{{Ports: TCP(443, 6443)}}
}

// DNS are the ports of name servers, which are pods or each node's metadata server.
func DNS() []networkingv1.NetworkPolicyPort {
	return append(TCP(53), policyPort(corev1.ProtocolUDP, 53))
}

func policyPort(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	to := intstr.FromInt32(number)
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &to}
}

// ServicePort is a port of a service that the pods listen on with the same number. The
// API server would fill in the target of a port without one, and every plan would
// take it away again.
func ServicePort(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: intstr.FromInt32(number)}
}
