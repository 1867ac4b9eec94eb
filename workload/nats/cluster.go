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
	servers := networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: Namespace}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nats", "nats_cluster": nats.Name}},
	}
	port := networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(config.NATSPort))}
	return Broker{
		URL: fmt.Sprintf("nats://%s:%d", nats.Host(), config.NATSPort),
		Egress: networkingv1.NetworkPolicyEgressRule{
			To: []networkingv1.NetworkPolicyPeer{servers}, Ports: []networkingv1.NetworkPolicyPort{port},
		},
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

//go:embed cluster.yaml
var clusterManifest string

// NewCluster registers a NatsCluster, and the policies that admit only its clients.
func NewCluster(r *kube.Registrar, name string, args ClusterArgs) Cluster {
	of := kube.ByKind(clusterManifest, struct {
		*ClusterArgs
		PriorityClass string
		Exporter      config.Image
		Stay          int
	}{&args, config.PriorityNATS.Name, config.ImageNATSExporter, args.NATS.Size - 1})
	objects := r.Component("persia:nats:Cluster", name)
	objects.Add(name, of["NetworkPolicy"], args.Needs)
	if args.Monitoring == kube.ManagedPrometheus && args.NATS.Metrics {
		objects.Add(name, of["PodMonitoring"], args.Needs)
	}
	if args.Monitoring != "" && args.NATS.Metrics {
		meta := kube.Meta(Namespace, args.NATS.Name, kube.Labels("nats", args.NATS.Name))
		objects.Add(name, kube.Alerts(args.Monitoring, meta, alerts), args.Needs)
	}
	servers := objects.Add(name, of[Kind], args.Needs, kube.RolloutTimeouts(args.NATS.Size),
		// The name is taken until the old object is deleted.
		pulumi.ReplaceOnChanges(ReplacedBy), pulumi.DeleteBeforeReplace(true))
	budget := objects.Add(name, of["PodDisruptionBudget"], args.Needs, kube.RolloutTimeouts(args.NATS.Size), recreatedWith(servers))
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

// alerts are alerting rules of all servers.
//
//go:embed alerts.yaml
var alerts string

// Namespace holds the operator and the servers.
const Namespace = config.NATSNamespace

// The kind of a NatsCluster, and its type in Pulumi.
const (
	Kind  = "NatsCluster"
	Token = "kubernetes:nats.io/v1alpha2:" + Kind
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
