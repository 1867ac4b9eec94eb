package gke

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
)

// addons configures the parts of GKE that run on the cluster's nodes.
func addons(cluster config.Cluster, has answered) container.ClusterAddonsConfigArgs {
	addons := container.ClusterAddonsConfigArgs{
		GcpFilestoreCsiDriverConfig: container.ClusterAddonsConfigGcpFilestoreCsiDriverConfigArgs{
			Enabled: pulumi.Bool(cluster.CSIDrivers.Filestore),
		},
		GcsFuseCsiDriverConfig: container.ClusterAddonsConfigGcsFuseCsiDriverConfigArgs{
			Enabled: pulumi.Bool(cluster.CSIDrivers.GCSFuse),
		},
		GkeBackupAgentConfig: container.ClusterAddonsConfigGkeBackupAgentConfigArgs{
			Enabled: pulumi.Bool(cluster.Backup.Agent),
		},
	}
	if !has.diskDriver {
		addons.GcePersistentDiskCsiDriverConfig = container.ClusterAddonsConfigGcePersistentDiskCsiDriverConfigArgs{
			Enabled: pulumi.Bool(cluster.CSIDrivers.PersistentDisk),
		}
	}
	return addons
}

// autoscalingProfile applies to the stack's own pools. GKE creates no others.
func autoscalingProfile(cluster config.Cluster) container.ClusterClusterAutoscalingArgs {
	return container.ClusterClusterAutoscalingArgs{
		Enabled:            pulumi.Bool(false),
		AutoscalingProfile: pulumi.String(cluster.AutoscalingProfile),
	}
}
