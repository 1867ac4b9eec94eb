package persia

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/gcp"
	"persia/kube"
)

// closedPolicy lets no pod of the namespace speak with anybody, but for what other
// policies allow.
func closedPolicy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: kube.Meta(NamespaceName, "closed", kube.Labels("jobs", "closed")),
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		},
	}
}

// RegisterPolicy registers what the pods of a job may reach, after needs. It returns
// the options of the component's other children, which come after the policy: no pod
// runs without it. Needs stand once in the state so, and not with every child, where
// they would be the largest part of a stack of many jobs.
func RegisterPolicy(ctx *pulumi.Context, name string, component pulumi.Resource, namespace, job string, needs []pulumi.CustomResource) (pulumi.ResourceOption, error) {
	policy, err := kube.Register(ctx, name, jobPolicy(namespace, job), kube.Child(component, needs))
	return kube.Child(component, []pulumi.CustomResource{policy}), err
}

// jobPolicy lets the pods of a job speak with each other on all ports, since
// torch.distributed and NCCL choose theirs, and besides go where every training
// goes: to NATS, to names, and by HTTPS to storage.
func jobPolicy(namespace, job string) *networkingv1.NetworkPolicy {
	pods := metav1.LabelSelector{MatchLabels: map[string]string{JobLabel: job}}
	own := networkingv1.NetworkPolicyPeer{PodSelector: &pods}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: kube.Meta(namespace, kube.LabelName(job, "traffic"), kube.Labels("job", job)),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: pods,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: kube.Peers(own)},
				{From: kube.Peers(kube.Namespace(kube.CollectorNamespace)), Ports: kube.TCP(metricsGatewayPort)},
			},
			Egress: []networkingv1.NetworkPolicyEgressRule{
				{To: kube.Peers(own)},
				{To: kube.Peers(kube.Namespace(config.NATSNamespace)), Ports: kube.TCP(natsPort)},
				{Ports: kube.DNS()},
				{Ports: kube.TCP(443)},
				{To: metadataServer(), Ports: kube.TCP(80, 988)},
			},
		},
	}
}

// natsPort is where NATS takes clients.
const natsPort = 4222

// metadataServer gives a pod its identity at Google Cloud: at the first address
// with GKE Dataplane V2, and at the second without (GKE's documentation of Workload
// Identity Federation, on network policies).
func metadataServer() []networkingv1.NetworkPolicyPeer {
	return kube.Peers(
		networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: gcp.MetadataServer + "/32"}},
		networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: gcp.NodeMetadataServer + "/32"}},
	)
}
