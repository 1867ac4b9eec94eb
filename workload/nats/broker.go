package nats

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/kube"
)

// Broker is how clients reach a NATS cluster, whatever runs its servers.
type Broker struct {
	// URL has no credentials.
	URL string
	// URLFrom is the URL with credentials, in a Secret of the clients' namespace, or
	// nil where none are needed.
	URLFrom *corev1.SecretKeySelector
	// Authority is the certificate of who has signed the servers', in PEM, or "" without
	// TLS.
	Authority string
	// Egress is what a NetworkPolicy of the clients must allow.
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
			// Another user is another key, and so gives clients a new pod
			// template: they start again.
			Key: args.NATS.Users[0].Name,
		}
	}
	return broker
}

// Env is the URL in a variable of the environment.
func (b Broker) Env(name string) corev1.EnvVar {
	if b.URLFrom == nil {
		return corev1.EnvVar{Name: name, Value: b.URL}
	}
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: b.URLFrom}}
}
