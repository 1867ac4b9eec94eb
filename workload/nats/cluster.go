package nats

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/kube"
)

// ClusterArgs describes a NATS cluster.
type ClusterArgs struct {
	NATS config.NATS
	// Images says where nodes pull images from.
	Images config.Images
	// Placement is where the servers run.
	Placement kube.Placement
	// Clients are the only pods that can reach the servers.
	Clients Clients
	// ManagedPrometheus says that the cluster has Managed Service for Prometheus.
	ManagedPrometheus bool
	// Needs are created before the NatsCluster and the PodMonitoring: the operator, its custom resource
	// definitions, and the namespace of the clients.
	Needs []pulumi.CustomResource
}

// Clients are pods of one namespace.
type Clients struct {
	Namespace string
	Pods      metav1.LabelSelector
}

// Cluster is a NATS cluster.
type Cluster struct {
	pulumi.ResourceState

	// URL is where clients inside the Kubernetes cluster connect, without
	// credentials.
	URL pulumi.StringOutput `pulumi:"url"`
	// Broker is everything that clients need to know.
	Broker Broker
	// Object is the NatsCluster, and ReplacedBy are the paths in it whose change
	// replaces it with all of its servers.
	Object     any
	ReplacedBy []string
	// Objects is the NatsCluster. It is created after the Secrets of servers and
	// clients, and does not wait for the servers: clients that depend on it start beside
	// them, and are deleted before them.
	Objects []pulumi.CustomResource
	// Ready is the disruption budget, which waits for all servers.
	Ready []pulumi.CustomResource
}

// NewCluster registers a NatsCluster, and the policies that admit only its clients.
func NewCluster(ctx *pulumi.Context, name string, args ClusterArgs, opts ...pulumi.ResourceOption) (*Cluster, error) {
	object := natsCluster(args)
	cluster := &Cluster{Broker: brokerOf(args), Object: object, ReplacedBy: replacedBy(args.NATS)}
	if err := ctx.RegisterComponentResource("persia:nats:Cluster", name, cluster, opts...); err != nil {
		return nil, err
	}
	child := kube.Child(cluster, args.Needs)

	secrets, err := registerSecrets(ctx, name, args, child)
	if err != nil {
		return nil, err
	}
	if _, err := kube.Register(ctx, name, serverPolicy(args), child); err != nil {
		return nil, err
	}
	if err := registerMonitoring(ctx, name, args, child); err != nil {
		return nil, err
	}
	servers, err := kube.Register(ctx, name, object, child, kube.After(secrets),
		kube.RolloutTimeouts(args.NATS.Size), replacement(args.NATS))
	if err != nil {
		return nil, err
	}
	budget, err := kube.Register(ctx, name, disruptionBudget(args.NATS), child,
		kube.RolloutTimeouts(args.NATS.Size), recreatedWith(servers))
	if err != nil {
		return nil, err
	}
	cluster.Objects, cluster.Ready = []pulumi.CustomResource{servers}, []pulumi.CustomResource{budget}
	cluster.URL = pulumi.String(cluster.Broker.URL).ToStringOutput()
	return cluster, ctx.RegisterResourceOutputs(cluster, pulumi.Map{"url": cluster.URL})
}

// natsCluster returns the custom resource for which the operator creates servers.
func natsCluster(args ClusterArgs) *kube.Custom[spec] {
	return &kube.Custom[spec]{
		TypeMeta:   metav1.TypeMeta{APIVersion: group + "/" + version, Kind: clusterKind.name},
		ObjectMeta: kube.Meta(Namespace, args.NATS.Name, kube.Labels("nats", args.NATS.Name)),
		Spec:       clusterSpec(args),
	}
}
