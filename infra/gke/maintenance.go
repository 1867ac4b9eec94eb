package gke

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
)

// maintenancePolicy says when GKE upgrades. Exclusions let patches of the control
// plane through, since these reach no training.
func maintenancePolicy(maintenance config.Maintenance) container.ClusterMaintenancePolicyArgs {
	exclusions := container.ClusterMaintenancePolicyMaintenanceExclusionArray{}
	for _, exclusion := range maintenance.Exclusions {
		exclusions = append(exclusions, container.ClusterMaintenancePolicyMaintenanceExclusionArgs{
			ExclusionName: pulumi.String(exclusion.Name),
			StartTime:     pulumi.String(exclusion.Start),
			EndTime:       pulumi.String(exclusion.End),
			ExclusionOptions: container.ClusterMaintenancePolicyMaintenanceExclusionExclusionOptionsArgs{
				Scope: pulumi.String("NO_MINOR_OR_NODE_UPGRADES"),
			},
		})
	}
	return container.ClusterMaintenancePolicyArgs{
		DailyMaintenanceWindow: container.ClusterMaintenancePolicyDailyMaintenanceWindowArgs{
			StartTime: pulumi.String(maintenance.StartTime),
		},
		MaintenanceExclusions: exclusions,
	}
}
