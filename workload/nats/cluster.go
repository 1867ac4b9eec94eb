package nats

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config/imagespec"
	"persia/config/natsspec"
	"persia/kube"
)

// ClusterArgs describes a NATS cluster.
type ClusterArgs struct {
	NATS natsspec.Settings
	// Images says where nodes pull images from.
	Images imagespec.Settings
	// Placement is where the servers run.
	Placement kube.Placement
	// Clients are the only pods that can reach the servers.
	Clients Clients
	// ManagedPrometheus says that the cluster has Managed Service for Prometheus.
	ManagedPrometheus bool
	// Needs are created before the NatsCluster: the operator, its custom resource
	// definitions, and the namespace of the clients.
	Needs []pulumi.CustomResource
}

// Clients are pods of one namespace.
type Clients struct {
	Namespace string
	Pods      metav1.LabelSelector
}

// Cluster is a NATS cluster whose servers are all running.
type Cluster struct {
	pulumi.ResourceState

	// URL is where clients inside the Kubernetes cluster connect, without
	// credentials.
	URL pulumi.StringOutput `pulumi:"url"`
	// Broker is everything that clients need to know.
	Broker Broker
	// Objects is the NatsCluster. It is created after the Secrets of servers and
	// clients, and is ready when the servers are.
	Objects []pulumi.CustomResource
}

// NewCluster registers a NatsCluster, and the policies that admit only its clients.
func NewCluster(ctx *pulumi.Context, name string, args ClusterArgs, opts ...pulumi.ResourceOption) (*Cluster, error) {
	cluster := &Cluster{Broker: brokerOf(args)}
	if err := ctx.RegisterComponentResource("persia:nats:Cluster", name, cluster, opts...); err != nil {
		return nil, err
	}
	child := kube.Child(cluster, args.Needs)

	secrets, err := registerSecrets(ctx, name, args, child)
	if err != nil {
		return nil, err
	}
	if err := registerPolicies(ctx, name, args, child); err != nil {
		return nil, err
	}
	if err := registerMonitoring(ctx, name, args, child); err != nil {
		return nil, err
	}
	servers, err := kube.Register(ctx, name, natsCluster(args), child, kube.After(secrets),
		kube.RolloutTimeouts(args.NATS.Size), replacement(args.NATS))
	if err != nil {
		return nil, err
	}
	cluster.Objects = []pulumi.CustomResource{servers}
	cluster.URL = pulumi.String(cluster.Broker.URL).ToStringOutput()
	return cluster, ctx.RegisterResourceOutputs(cluster, pulumi.Map{"url": cluster.URL})
}

// natsCluster is the custom resource for which the operator creates servers.
func natsCluster(args ClusterArgs) *kube.Custom[spec] {
	meta := kube.Meta(Namespace, args.NATS.Name, kube.Labels("nats", args.NATS.Name))
	meta.Annotations = awaitServers(args.NATS)
	return &kube.Custom[spec]{
		TypeMeta:   metav1.TypeMeta{APIVersion: group + "/" + version, Kind: clusterKind.name},
		ObjectMeta: meta,
		Spec:       clusterSpec(args),
	}
}

// awaitServers makes the Kubernetes provider wait for the servers. The operator writes
// size and version into the status when the last server is ready.
func awaitServers(nats natsspec.Settings) map[string]string {
	return map[string]string{"pulumi.com/waitFor": fmt.Sprintf(
		`["jsonpath={.status.size}=%d","jsonpath={.status.currentVersion}=%s"]`, nats.Size, nats.Version)}
}
