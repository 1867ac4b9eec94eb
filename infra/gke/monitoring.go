package gke

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
)

func monitoringConfig(monitoring config.Monitoring) container.ClusterMonitoringConfigArgs {
	return container.ClusterMonitoringConfigArgs{
		EnableComponents: pulumi.ToStringArray(monitoring.Components),
		ManagedPrometheus: container.ClusterMonitoringConfigManagedPrometheusArgs{
			Enabled: pulumi.Bool(*monitoring.ManagedPrometheus),
		},
	}
}
