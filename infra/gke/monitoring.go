package gke

import (
	"cmp"
	"slices"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	clusterconfig "persia/config/cluster"
	"persia/gcp"
)

// monitoringConfig names the components in the order in which GKE answers them: to
// the provider they are a list, and another order would be a change in every plan.
func monitoringConfig(monitoring clusterconfig.Monitoring) container.ClusterMonitoringConfigArgs {
	components := slices.SortedFunc(slices.Values(monitoring.Components), func(a, b string) int {
		return cmp.Compare(slices.Index(gcp.MonitoringComponents, a), slices.Index(gcp.MonitoringComponents, b))
	})
	return container.ClusterMonitoringConfigArgs{
		EnableComponents: pulumi.ToStringArray(components),
		ManagedPrometheus: container.ClusterMonitoringConfigManagedPrometheusArgs{
			Enabled: pulumi.Bool(monitoring.ManagedPrometheus),
		},
	}
}
