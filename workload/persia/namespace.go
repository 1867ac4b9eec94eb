package persia

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/gcp"
	"persia/kube"
)

// NamespaceName is the Kubernetes namespace of a stack's jobs.
const NamespaceName = config.JobNamespace

// NamespaceArgs describes where jobs run.
type NamespaceArgs struct {
	// HostPaths says that jobs mount directories of their nodes, which no Pod Security Standard but the privileged
	// allows.
	HostPaths bool
	// Monitoring is the service that collects metrics and evaluates alerts.
	Monitoring kube.Monitoring
	// MonitoringNeeds are created before the PodMonitoring and the alerts: a Deployment. They go through a webhook
	// that GKE runs on the nodes, and that may not serve yet when a new cluster has no pod of the stack.
	MonitoringNeeds []pulumi.CustomResource
}

// NewNamespace registers the namespace of the stack's jobs, their start scripts, and the dashboard. A default policy
// denies all traffic; each job has a policy of its own. NewNamespace returns what must exist before every pod of the
// namespace.
func NewNamespace(r *kube.Registrar, name string, args NamespaceArgs) []pulumi.CustomResource {
	objects := r.Component("persia:workload:Namespace", name)
	security := "baseline"
	if args.HostPaths {
		security = "privileged"
	}
	namespace := kube.Needs(objects.Add(name, &corev1.Namespace{ObjectMeta: kube.Meta("", NamespaceName, kube.PodSecurity(security))}, nil))
	closed := objects.Add(name+"-closed", kube.Closed(kube.Meta(NamespaceName, "closed", kube.Labels("jobs", "closed"))), namespace)
	launch := objects.Add(launchName(), launchConfigMap(), namespace)
	monitored := append(namespace, args.MonitoringNeeds...)
	if args.Monitoring == kube.ManagedPrometheus {
		objects.Add(name, podMonitoring(), monitored)
	}
	if args.Monitoring != "" {
		objects.Add(name, kube.Alerts(args.Monitoring, kube.Meta(NamespaceName, name, kube.Labels("alerts", name)), alerts), monitored)
	}
	objects.Add(dashboardName, dashboardConfigMap(), namespace)
	return kube.Needs(closed, launch)
}

// jobPolicy allows all connections between the pods of a job, because torch.distributed and NCCL choose ports, and
// connections to its own NATS, to DNS, and by HTTPS to storage.
func jobPolicy(names names, broker networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
	pods := PodsOf(names.job)
	own := networkingv1.NetworkPolicyPeer{PodSelector: &pods}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: kube.Meta(NamespaceName, names.traffic, names.labels),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: pods,
			PolicyTypes: kube.BothWays(),
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: kube.Peers(own)},
				{From: kube.Peers(kube.Namespace(kube.CollectorNamespace)), Ports: kube.TCP(metricsGatewayPort)},
			},
			Egress: []networkingv1.NetworkPolicyEgressRule{
				{To: kube.Peers(own)},
				broker,
				{Ports: kube.DNS()},
				{Ports: kube.TCP(443)},
				{To: metadataServer(), Ports: kube.TCP(80, 988)},
			},
		},
	}
}

// PodsOf selects the pods of a job, whichever engine creates them. Without a job, it selects the pods of all jobs of
// the stack.
func PodsOf(job string) metav1.LabelSelector {
	if job == "" {
		return labelled(config.JobLabel)
	}
	return metav1.LabelSelector{MatchLabels: map[string]string{config.JobLabel: job}}
}

// labelled selects what has a label.
func labelled(key string) metav1.LabelSelector {
	exists := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists}
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{exists}}
}

// metadataServer gives a pod its identity at Google Cloud: at the first address with GKE Dataplane V2, and at the
// second without (GKE's documentation of Workload Identity Federation, on network policies).
func metadataServer() []networkingv1.NetworkPolicyPeer {
	return kube.Peers(
		networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: gcp.MetadataServer + "/32"}},
		networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: gcp.NodeMetadataServer + "/32"}},
	)
}
