package nats

import (
	"fmt"

	sdkkubernetes "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	sdkmeta "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/config"
	"persia/kube"
)

// ClusterArgs describes a NATS cluster.
type ClusterArgs struct {
	NATS config.NATS
	// Placement is where the servers run.
	Placement kube.Placement
	// ClientNamespace is where the clients run, which have the label ClientLabel.
	ClientNamespace, ClientLabel string
	// ManagedPrometheus says that the cluster has Managed Service for Prometheus.
	ManagedPrometheus bool
	// Needs come before the NatsCluster: the operator and its kinds, and the
	// namespace of the clients.
	Needs []pulumi.CustomResource
}

// Cluster is a NATS cluster with all of its servers up.
type Cluster struct {
	pulumi.ResourceState

	// URL is where clients inside the Kubernetes cluster connect, without
	// credentials.
	URL pulumi.StringOutput `pulumi:"url"`
	// Client is all that clients need to know.
	Client Client
	// Objects are the NatsCluster, which comes after the Secrets of servers and
	// clients, and is ready when the servers are.
	Objects []pulumi.CustomResource
}

// NewCluster registers a NatsCluster, and what lets clients in and keeps others
// out.
func NewCluster(ctx *pulumi.Context, name string, args ClusterArgs, opts ...pulumi.ResourceOption) (*Cluster, error) {
	cluster := &Cluster{Client: clientOf(args)}
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
	servers, err := registerNatsCluster(ctx, name, args, child, kube.After(secrets))
	if err != nil {
		return nil, err
	}
	cluster.Objects = []pulumi.CustomResource{servers}
	cluster.URL = pulumi.String(cluster.Client.URL).ToStringOutput()
	return cluster, ctx.RegisterResourceOutputs(cluster, pulumi.Map{"url": cluster.URL})
}

func registerNatsCluster(ctx *pulumi.Context, name string, args ClusterArgs, opts ...pulumi.ResourceOption) (pulumi.CustomResource, error) {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(clusterSpec(args))
	if err != nil {
		return nil, fmt.Errorf("NatsCluster %s: %w", args.NATS.Name, err)
	}
	opts = append(opts, kube.WorkloadTimeouts())
	return apiextensions.NewCustomResource(ctx, name, &apiextensions.CustomResourceArgs{
		ApiVersion: pulumi.String(group + "/" + version),
		Kind:       pulumi.String(clusterKind.name),
		Metadata: sdkmeta.ObjectMetaArgs{
			Namespace:   pulumi.String(Namespace),
			Name:        pulumi.String(args.NATS.Name),
			Labels:      pulumi.ToStringMap(kube.Labels("nats", args.NATS.Name)),
			Annotations: pulumi.ToStringMap(awaitServers(args.NATS)),
		},
		OtherFields: sdkkubernetes.UntypedArgs{"spec": spec},
	}, append(opts, replacement(args.NATS)...)...)
}

// awaitServers makes the Kubernetes provider wait for the servers. The operator
// writes size and version into the status once the last of them is ready.
func awaitServers(nats config.NATS) map[string]string {
	return map[string]string{"pulumi.com/waitFor": fmt.Sprintf(
		`["jsonpath={.status.size}=%d","jsonpath={.status.currentVersion}=%s"]`, nats.Size, nats.Version)}
}
