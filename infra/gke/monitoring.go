package gke

import (
	"cmp"
	"slices"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/gcp"
)

// monitoringConfig configures what GKE writes to Cloud Monitoring.
func monitoringConfig(monitoring config.Monitoring) container.ClusterMonitoringConfigArgs {
	return container.ClusterMonitoringConfigArgs{
		EnableComponents: components(monitoring.Components, gcp.MonitoringComponents),
		ManagedPrometheus: container.ClusterMonitoringConfigManagedPrometheusArgs{
			Enabled: pulumi.Bool(monitoring.ManagedPrometheus),
		},
	}
}

// loggingConfig configures what GKE writes to Cloud Logging.
func loggingConfig(logging config.Logging) container.ClusterLoggingConfigArgs {
	return container.ClusterLoggingConfigArgs{EnableComponents: components(logging.Components, gcp.LoggingComponents)}
}

// components are parts of GKE in the order in which GKE answers them: to the provider
// they are a list, and another order would be a change in every plan.
func components(chosen, order []string) pulumi.StringArray {
	return pulumi.ToStringArray(slices.SortedFunc(slices.Values(chosen), func(a, b string) int {
		return cmp.Compare(slices.Index(order, a), slices.Index(order, b))
	}))
}
