package gke

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"persia/config"
	"persia/config/input"
	"persia/gcp"
	"persia/infra/iam"
)

// authorizedNetworks without any lets only the cluster's own network in. The public addresses of Google Cloud, which
// anybody can rent, are let in unless GKE is told otherwise.
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

// AccessWarning says to which addresses an update closes the control plane, or returns "". If Pulumi runs there,
// it reaches nothing in the cluster afterwards.
func AccessWarning(project string, cluster config.Cluster, resources map[resource.URN]map[string]any) string {
	had := inState("gcp:container/cluster:Cluster", project, cluster, resources)
	private, _, _ := unstructured.NestedBool(had, "privateClusterConfig", "enablePrivateEndpoint")
	blocks, _, _ := unstructured.NestedSlice(had, "masterAuthorizedNetworksConfig", "cidrBlocks")
	leavesInternet := cluster.PrivateEndpoint && !private
	open, closed := []string{"machines in the network " + cluster.Name}, []string{}
	for _, network := range cluster.AuthorizedNetworks {
		open = append(open, network.CIDR)
	}
	for _, block := range blocks {
		block, _ := block.(map[string]any)
		was, err := netip.ParsePrefix(fmt.Sprint(block["cidrBlock"]))
		stays := slices.ContainsFunc(open, func(cidr string) bool {
			is, err := netip.ParsePrefix(cidr)
			return err == nil && contains(is, was)
		})
		if err == nil && (!stays || leavesInternet && !was.Addr().IsPrivate()) {
			closed = append(closed, was.String())
		}
	}
	if len(closed) == 0 {
		return ""
	}
	open = slices.DeleteFunc(open, func(cidr string) bool { return slices.Contains(closed, cidr) })
	return fmt.Sprintf("persia:cluster.authorizedNetworks: this update closes the control plane to %s: only %s can connect to it then, "+
		"Pulumi included. If Pulumi runs elsewhere, everything after the cluster times out; keep the address that it connects from",
		input.And(closed), input.And(open))
}

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

// components are parts of GKE in the order in which GKE answers them: to the provider
// they are a list, and another order would be a change in every plan.
func components(chosen []string, kind string) pulumi.StringArray {
	return pulumi.ToStringArray(slices.SortedFunc(slices.Values(chosen), func(a, b string) int {
		return cmp.Compare(slices.Index(gcp.Components[kind], a), slices.Index(gcp.Components[kind], b))
	}))
}

// newKeyGrants grants Google's services the use of the configured keys.
func newKeyGrants(ctx *pulumi.Context, args Args) ([]pulumi.CustomResource, error) {
	secrets, err := args.Keys.Grant(ctx, args.Cluster.Encryption.Secrets, iam.KubernetesEngine)
	if err != nil {
		return nil, err
	}
	disks, err := args.Keys.Grant(ctx, args.Cluster.Encryption.BootDisks, iam.ComputeEngine)
	return slices.Concat(secrets, disks), err
}
