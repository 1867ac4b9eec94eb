package gke

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
)

// privateCluster gives nodes no public addresses.
func privateCluster(cluster config.Cluster) container.ClusterPrivateClusterConfigArgs {
	return container.ClusterPrivateClusterConfigArgs{
		EnablePrivateNodes:    pulumi.Bool(true),
		EnablePrivateEndpoint: pulumi.Bool(cluster.PrivateEndpoint),
		MasterIpv4CidrBlock:   pulumi.String(cluster.Network.ControlPlane),
	}
}

// authorizedNetworks without any lets only the cluster's own network in. The public
// addresses of Google Cloud, which anybody can rent, are let in unless GKE is told
// otherwise.
func authorizedNetworks(networks []config.AuthorizedNetwork) container.ClusterMasterAuthorizedNetworksConfigArgs {
	blocks := container.ClusterMasterAuthorizedNetworksConfigCidrBlockArray{}
	for _, network := range networks {
		blocks = append(blocks, container.ClusterMasterAuthorizedNetworksConfigCidrBlockArgs{
			DisplayName: pulumi.String(network.Name),
			CidrBlock:   pulumi.String(network.CIDR),
		})
	}
	return container.ClusterMasterAuthorizedNetworksConfigArgs{
		CidrBlocks:                  blocks,
		GcpPublicCidrsAccessEnabled: pulumi.Bool(false),
	}
}
