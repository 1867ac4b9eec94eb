// Package nats runs the NATS cluster that carries PERSIA's messages: the NATS operator, and the
// NatsCluster for which the operator creates servers.
//
// Clients of NATS need only the URL of a [Cluster] and a dependency on it, and nothing of the
// operator, so that another way to run NATS can replace it.
package nats

import (
	_ "embed"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/capacity"
	"persia/config"
	"persia/kube"
)

// ClusterArgs describes a NATS cluster.
type ClusterArgs struct {
	NATS   config.NATS
	Images config.Images
	// Placement is where the servers run.
	Placement kube.Placement
	// Clients are the only pods that can reach the servers, in the namespace of jobs.
	Clients metav1.LabelSelector
	// Monitoring is the service that collects metrics and evaluates alerts.
	Monitoring kube.Monitoring
	// Needs are created before the NatsCluster and the PodMonitoring: the operator, its custom resource
	// definitions, and the namespace of the clients.
	Needs []pulumi.CustomResource
}

// Broker says how clients reach a NATS cluster, independent of what runs its servers.
type Broker struct {
	URL string `pulumi:"natsUrl"`
	// Egress is the rule that a NetworkPolicy of the clients needs.
	Egress networkingv1.NetworkPolicyEgressRule
}

func brokerOf(nats config.NATS) Broker {
	servers := kube.Namespace(Namespace)
	servers.PodSelector = &metav1.LabelSelector{MatchLabels: serverLabels(nats)}
	return Broker{
		URL:    fmt.Sprintf("nats://%s:%d", nats.Host(), clientPort),
		Egress: networkingv1.NetworkPolicyEgressRule{To: kube.Peers(servers), Ports: kube.TCP(clientPort)},
	}
}

// Env returns an environment variable with the URL.
func (b Broker) Env(name string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: b.URL} }

// Cluster is a NATS cluster.
type Cluster struct {
	// Broker is everything that clients need to know.
	Broker
	// Objects is the NatsCluster. It does not wait for the servers: clients that depend on it start
	// beside them, and are deleted before them.
	Objects []pulumi.CustomResource
	// Ready is the disruption budget, which waits for all servers.
	Ready []pulumi.CustomResource
}

// NewCluster registers a NatsCluster, and the policies that admit only its clients.
func NewCluster(r *kube.Registrar, name string, args ClusterArgs) Cluster {
	objects := r.Component("persia:nats:Cluster", name)
	objects.Add(name, serverPolicy(args), args.Needs)
	if args.Monitoring == kube.ManagedPrometheus && args.NATS.Metrics {
		objects.Add(name, podMonitoring(args.NATS), args.Needs)
	}
	if args.Monitoring != "" && args.NATS.Metrics {
		objects.Add(name, kube.Alerts(args.Monitoring, meta(args.NATS), alerts), args.Needs)
	}
	kind := metav1.TypeMeta{APIVersion: apiVersion, Kind: Kind} // for which the operator creates servers
	custom := &kube.Custom[fields]{TypeMeta: kind, ObjectMeta: meta(args.NATS), Spec: clusterSpec(args)}
	servers := objects.Add(name, custom, args.Needs, kube.RolloutTimeouts(args.NATS.Size),
		// The name is taken until the old object is deleted.
		pulumi.ReplaceOnChanges(ReplacedBy), pulumi.DeleteBeforeReplace(true))
	budget := objects.Add(name, disruptionBudget(args.NATS), args.Needs, kube.RolloutTimeouts(args.NATS.Size), recreatedWith(servers))
	cluster := Cluster{Broker: brokerOf(args.NATS), Objects: kube.Needs(servers), Ready: kube.Needs(budget)}
	objects.Outputs = cluster
	return cluster
}

// ReplacedBy are the paths in a NatsCluster whose change replaces it with all of its servers. The
// operator never changes a pod that it has created, except for its version, and nats-server refuses
// to reload a configuration in which one of the last two has changed.
var ReplacedBy = []string{
	"spec.serverImage", "spec.pod", "spec.template", "spec.natsConfig.maxPending", "spec.lameDuckDurationSeconds",
}

// disruptionBudget allows one server to be evicted at a time. It counts the servers
// that stay: for pods that a custom resource owns, Kubernetes does not know how many
// there should be, so a maximum of unavailable pods would forbid every eviction.
//
// It is also what waits for the servers, so that nothing else has to: Kubernetes writes into its
// status how many pods of the version are ready.
func disruptionBudget(nats config.NATS) *policyv1.PodDisruptionBudget {
	object := meta(nats)
	object.Annotations = map[string]string{"pulumi.com/waitFor": fmt.Sprintf("jsonpath={.status.currentHealthy}=%d", nats.Size)}
	pods := serverLabels(nats)
	pods[versionLabel] = nats.Version
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: object,
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt(nats.Size - 1)),
			// Otherwise, a pod that crashes forever would prevent its node from being drained.
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			Selector:                   &metav1.LabelSelector{MatchLabels: pods},
		},
	}
}

// versionLabel is the label that the operator changes when it has upgraded a server.
const versionLabel = "nats_version"

// recreatedWith creates the budget after the NatsCluster, and recreates it when it must count other
// pods: the status of the old one would still count the previous pods.
func recreatedWith(servers pulumi.CustomResource) pulumi.ResourceOption {
	return pulumi.Composite(
		kube.After([]pulumi.CustomResource{servers}),
		pulumi.ReplaceWith([]pulumi.Resource{servers}),
		pulumi.DeleteBeforeReplace(true),
		pulumi.ReplaceOnChanges([]string{"spec.selector"}),
	)
}

// serverPolicy admits clients, other servers, and the collectors of metrics. The kubelet's probes need no rule. A
// server connects only to other servers, which it looks up by name.
func serverPolicy(args ClusterArgs) *networkingv1.NetworkPolicy {
	servers := networkingv1.NetworkPolicyPeer{
		PodSelector: &metav1.LabelSelector{MatchLabels: serverLabels(args.NATS)},
	}
	clients := kube.Namespace(config.JobNamespace)
	clients.PodSelector = &args.Clients
	collectors := kube.Namespace(kube.CollectorNamespace)
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(args.NATS),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *servers.PodSelector,
			PolicyTypes: kube.BothWays(),
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

func podMonitoring(nats config.NATS) *kube.PodMonitoring {
	return kube.NewPodMonitoring(meta(nats), metav1.LabelSelector{MatchLabels: serverLabels(nats)}, metricsPort)
}

func meta(nats config.NATS) metav1.ObjectMeta {
	return kube.Meta(Namespace, nats.Name, kube.Labels("nats", nats.Name))
}

// alerts are alerting rules of all servers.
//
//go:embed alerts.yaml
var alerts string

// Namespace holds the operator and the servers.
const Namespace = config.NATSNamespace

// The kind of a NatsCluster, and its type in Pulumi.
const (
	apiVersion = "nats.io/v1alpha2"
	Kind       = "NatsCluster"
	Token      = "kubernetes:" + apiVersion + ":" + Kind
)

//go:embed operator.yaml
var operatorManifest string

// NewOperator registers the NATS operator with its namespace, its identity, and its custom resource
// definitions. It manages the NatsClusters of [Namespace].
func NewOperator(r *kube.Registrar, name string) []pulumi.CustomResource {
	return kube.Needs(r.Component("persia:nats:Operator", name).AddOperator(name, kube.Operator{
		Manifest: operatorManifest, Image: config.ImageNATSOperator.Reference(), Requests: capacity.NATSOperator,
	}, nil))
}
