package gke

import (
	"fmt"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
)

// Args describes a cluster.
type Args struct {
	// Project is the Google Cloud project.
	Project   string
	Cluster   config.Cluster
	NodePools []config.NodePool
	// NVIDIADriver decides what GPU pools ask of GKE.
	NVIDIADriver config.NVIDIADriver
}

// Cluster is a GKE cluster with its node pools.
type Cluster struct {
	pulumi.ResourceState

	Name     pulumi.StringOutput `pulumi:"name"`
	Endpoint pulumi.StringOutput `pulumi:"endpoint"`
	// Kubeconfig is the text of a kubeconfig file, a secret. It holds no
	// credential: kubectl gets one from gke-gcloud-auth-plugin.
	Kubeconfig pulumi.StringOutput `pulumi:"kubeconfig"`

	// Provider registers objects inside the cluster.
	Provider *kubernetes.Provider
}

// NewCluster registers a cluster and all that it stands on. Depending on it is
// depending on its node pools.
func NewCluster(ctx *pulumi.Context, name string, args Args, opts ...pulumi.ResourceOption) (*Cluster, error) {
	cluster := &Cluster{}
	if err := ctx.RegisterComponentResource("persia:gke:Cluster", name, cluster, opts...); err != nil {
		return nil, err
	}
	child := pulumi.Parent(cluster)

	network, err := newNetwork(ctx, name, args, child)
	if err != nil {
		return nil, err
	}
	identity, err := newNodeIdentity(ctx, name, args, child)
	if err != nil {
		return nil, err
	}
	controlPlane, err := newControlPlane(ctx, name, args, network, identity, child)
	if err != nil {
		return nil, err
	}
	pools, err := newNodePools(ctx, name, args, controlPlane, identity, child)
	if err != nil {
		return nil, err
	}

	cluster.Name = controlPlane.Name
	cluster.Endpoint = controlPlane.Endpoint
	cluster.Kubeconfig = kubeconfig(controlPlane)
	cluster.Provider, err = kubernetes.NewProvider(ctx, name, &kubernetes.ProviderArgs{
		Kubeconfig: cluster.Kubeconfig,
		// A kubeconfig changes with the cluster's certificate; what is inside
		// the cluster is replaced only when the cluster itself is another.
		ClusterIdentifier: pulumi.String(clusterID(args)),
	}, child, pulumi.DependsOn(pools))
	if err != nil {
		return nil, err
	}
	return cluster, ctx.RegisterResourceOutputs(cluster, pulumi.Map{
		"name":       cluster.Name,
		"endpoint":   cluster.Endpoint,
		"kubeconfig": cluster.Kubeconfig,
	})
}

// newControlPlane registers the cluster without a node pool of its own.
func newControlPlane(ctx *pulumi.Context, name string, args Args, network *network, identity *nodeIdentity, child pulumi.ResourceOption) (*container.Cluster, error) {
	cluster := args.Cluster
	return container.NewCluster(ctx, name, &container.ClusterArgs{
		Project:               pulumi.String(args.Project),
		Name:                  pulumi.String(cluster.Name),
		Location:              pulumi.String(cluster.Region),
		NodeLocations:         pulumi.ToStringArray(cluster.Zones),
		DeletionProtection:    pulumi.Bool(*cluster.DeletionProtection),
		RemoveDefaultNodePool: pulumi.Bool(true),
		InitialNodeCount:      pulumi.Int(1),
		// The default pool lives for minutes, but with the project's default
		// identity if none is given, which may do far too much.
		NodeConfig: container.ClusterNodeConfigArgs{
			ServiceAccount: identity.email,
			OauthScopes:    nodeScopes(),
		},

		Network:    network.network.ID(),
		Subnetwork: network.subnetwork.ID(),
		IpAllocationPolicy: container.ClusterIpAllocationPolicyArgs{
			ClusterSecondaryRangeName:  pulumi.String(podRange),
			ServicesSecondaryRangeName: pulumi.String(serviceRange),
		},
		PrivateClusterConfig: container.ClusterPrivateClusterConfigArgs{
			EnablePrivateNodes:    pulumi.Bool(true),
			EnablePrivateEndpoint: pulumi.Bool(false),
			MasterIpv4CidrBlock:   pulumi.String(cluster.Network.ControlPlane),
		},
		MasterAuthorizedNetworksConfig: container.ClusterMasterAuthorizedNetworksConfigArgs{
			CidrBlocks: authorizedNetworks(cluster.AuthorizedNetworks),
		},
		DatapathProvider: pulumi.String("ADVANCED_DATAPATH"),

		ReleaseChannel: container.ClusterReleaseChannelArgs{
			Channel: pulumi.String(cluster.ReleaseChannel),
		},
		EnableShieldedNodes: pulumi.Bool(true),
		WorkloadIdentityConfig: container.ClusterWorkloadIdentityConfigArgs{
			WorkloadPool: pulumi.String(workloadPool(args.Project)),
		},
		AddonsConfig: container.ClusterAddonsConfigArgs{
			GcePersistentDiskCsiDriverConfig: container.ClusterAddonsConfigGcePersistentDiskCsiDriverConfigArgs{
				Enabled: pulumi.Bool(true),
			},
			GcsFuseCsiDriverConfig: container.ClusterAddonsConfigGcsFuseCsiDriverConfigArgs{
				Enabled: pulumi.Bool(true),
			},
		},
	},
		child,
		// Both describe the default pool, which is gone after creation.
		pulumi.IgnoreChanges([]string{"nodeConfig", "initialNodeCount"}),
		// Nodes get their images and report through these.
		pulumi.DependsOn(append(identity.grants, network.nat)))
}

func authorizedNetworks(networks []config.AuthorizedNetwork) container.ClusterMasterAuthorizedNetworksConfigCidrBlockArray {
	blocks := container.ClusterMasterAuthorizedNetworksConfigCidrBlockArray{}
	for _, network := range networks {
		blocks = append(blocks, container.ClusterMasterAuthorizedNetworksConfigCidrBlockArgs{
			DisplayName: pulumi.String(network.Name),
			CidrBlock:   pulumi.String(network.CIDR),
		})
	}
	return blocks
}

func clusterID(args Args) string {
	return fmt.Sprintf("projects/%s/locations/%s/clusters/%s", args.Project, args.Cluster.Region, args.Cluster.Name)
}

func workloadPool(project string) string {
	return project + ".svc.id.goog"
}
