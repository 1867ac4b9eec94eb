package testkit

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// SecretOf is a Secret whose data is a secret of Pulumi's.
func SecretOf(t testing.TB, recorder *Recorder, name string) corev1.Secret {
	t.Helper()
	registration := recorder.One(t, Secret, name)
	inputs := registration.Inputs.Copy()
	inputs["data"] = inputs["data"].SecretValue().Element
	registration.Inputs = inputs
	return Object[corev1.Secret](t, registration)
}

// Container is the container of the pods of a StatefulSet.
func Container(set *appsv1.StatefulSet) corev1.Container { return set.Spec.Template.Spec.Containers[0] }

// Variable returns a variable of a role's environment, or "".
func Variable(set *appsv1.StatefulSet, name string) corev1.EnvVar {
	for _, entry := range Container(set).Env {
		if entry.Name == name {
			return entry
		}
	}
	return corev1.EnvVar{}
}

// Traffic is the traffic that a policy allows: the peers and ports of incoming and outgoing
// connections.
func Traffic(policy networkingv1.NetworkPolicy) (in, out []string) {
	for _, rule := range policy.Spec.Ingress {
		in = append(in, peers(rule.From)+" to "+ports(rule.Ports))
	}
	for _, rule := range policy.Spec.Egress {
		out = append(out, "to "+peers(rule.To)+" on "+ports(rule.Ports))
	}
	return in, out
}

func peers(peers []networkingv1.NetworkPolicyPeer) string {
	var texts []string
	for _, peer := range peers {
		text := "anything"
		if s := peer.PodSelector; s != nil {
			var parts []string
			for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
				parts = append(parts, key+"="+s.MatchLabels[key])
			}
			for _, e := range s.MatchExpressions {
				parts = append(parts, e.Key+" "+strings.ToLower(string(e.Operator)))
			}
			text = strings.Join(parts, ",")
		}
		if s := peer.NamespaceSelector; s != nil {
			text += " in " + s.MatchLabels["kubernetes.io/metadata.name"]
		}
		if block := peer.IPBlock; block != nil {
			text = block.CIDR
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return "anywhere"
	}
	return strings.Join(texts, " and ")
}

func ports(ports []networkingv1.NetworkPolicyPort) string {
	var texts []string
	for _, port := range ports {
		texts = append(texts, string(*port.Protocol)+" "+port.Port.String())
	}
	return strings.Join(texts, " ")
}
