package nats

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/kube"
)

// Broker says how clients reach a NATS cluster, independent of what runs its servers.
type Broker struct {
	// URL is the URL without credentials.
	URL string
	// URLFrom is the URL with credentials, in a Secret in the clients' namespace, or
	// nil if clients need no credentials.
	URLFrom *corev1.SecretKeySelector
	// Authority is the certificate of the authority that signed the servers'
	// certificates, in PEM, or "" without TLS.
	Authority string
	// Egress is the rule that a NetworkPolicy of the clients needs.
	Egress networkingv1.NetworkPolicyEgressRule
}

func brokerOf(args ClusterArgs) Broker {
	servers := kube.Namespace(Namespace)
	servers.PodSelector = &metav1.LabelSelector{MatchLabels: serverLabels(args.NATS)}
	broker := Broker{
		URL:    serverURL(args.NATS).String(),
		Egress: networkingv1.NetworkPolicyEgressRule{To: kube.Peers(servers), Ports: kube.TCP(clientPort)},
	}
	if tls := args.NATS.TLS.Clients; tls != nil {
		broker.Authority = tls.CA
	}
	if len(args.NATS.Users) > 0 {
		broker.URLFrom = &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: clientSecret(args.NATS)},
			// A different user has a different key, which changes the clients' pod
			// template: they restart.
			Key: args.NATS.Users[0].Name,
		}
	}
	return broker
}

// Env returns an environment variable with the URL.
func (b Broker) Env(name string) corev1.EnvVar {
	if b.URLFrom == nil {
		return corev1.EnvVar{Name: name, Value: b.URL}
	}
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: b.URLFrom}}
}
