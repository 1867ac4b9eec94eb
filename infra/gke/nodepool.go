package gke

import (
	"fmt"
	"time"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
)

// newNodePools registers the node pools. While the cluster is protected from
// deletion, so is each pool: Pulumi refuses a change that would replace it, and its
// removal. To replace a pool, set the cluster's deletionProtection to false along
// with the change; to remove one, set it to false and run `pulumi up`, and remove
// the pool then.
func newNodePools(ctx *pulumi.Context, name string, args Args, cluster *container.Cluster, identity *nodeIdentity, child pulumi.ResourceOption) ([]pulumi.Resource, error) {
	// GKE taints a GPU pool only if the cluster has a pool without GPUs when it creates the GPU
	// pool, and not later (GKE, "Run GPUs in Standard node pools").
	var pools, system []pulumi.Resource
	for _, pool := range args.NodePools {
		var after []pulumi.Resource
		if pool.GPU != nil {
			after = system
		}
		registered, err := container.NewNodePool(ctx, name+"-"+pool.Name, &container.NodePoolArgs{
			Project:            pulumi.String(args.Project),
			Cluster:            cluster.Name,
			Location:           pulumi.String(args.Cluster.Region),
			Name:               pulumi.String(pool.Name),
			NodeLocations:      locations(pool.Zones),
			NodeCount:          nodeCount(pool),
			Autoscaling:        autoscaling(pool),
			QueuedProvisioning: queuedProvisioning(pool),
			PlacementPolicy:    placementPolicy(pool),
			MaxPodsPerNode:     pulumi.Int(pool.MaxPodsPerNode),
			NodeConfig:         nodeConfig(pool, args, identity),
			UpgradeSettings: container.NodePoolUpgradeSettingsArgs{
				Strategy:       pulumi.String("SURGE"),
				MaxSurge:       pulumi.IntPtrFromPtr(pool.Upgrade.MaxSurge),
				MaxUnavailable: pulumi.IntPtrFromPtr(pool.Upgrade.MaxUnavailable),
			},
			Management: container.NodePoolManagementArgs{
				// A repair would ask for a node out of turn.
				AutoRepair: pulumi.Bool(!pool.QueuedProvisioning),
				// A release channel does not allow otherwise.
				AutoUpgrade: pulumi.Bool(true),
			},
		},
			child,
			pulumi.DependsOn(after),
			pulumi.Protect(args.Cluster.DeletionProtection),
			pulumi.IgnoreChanges(ignoredChanges(pool)),
			pulumi.Timeouts(&pulumi.CustomTimeouts{Create: "60m", Update: updateTimeout(pool), Delete: "60m"}))
		if err != nil {
			return nil, err
		}
		if pool.Name == config.SystemPoolName {
			system = append(system, registered)
		}
		pools = append(pools, registered)
	}
	return pools, nil
}

// updateTime is the time that an update of a pool has for what GKE does once.
const updateTime = 2 * time.Hour

// updateTimeout returns how long an update of all nodes of a pool may take.
func updateTimeout(pool config.Pool) string {
	limit := updateTime + time.Duration(pool.Rounds())*config.UpgradeRoundTime
	return fmt.Sprintf("%dm", int(limit.Minutes()))
}

// ignoredChanges returns the inputs that others change.
//
// GKE returns the numbers of nodes: the first would replace the pool, and the second would undo the
// autoscaler's work. GKE sets the kubelet's configuration and labels of its own on every pool.
// Before 6.18.1 the provider treats them as the program's, and GKE refuses its update to remove
// them because the update names no field.
func ignoredChanges(pool config.Pool) []string {
	ignored := []string{"initialNodeCount", "nodeConfig.kubeletConfig", "nodeConfig.resourceLabels"}
	if pool.Autoscaling != nil {
		ignored = append(ignored, "nodeCount")
	}
	return ignored
}

// locations returns the zones, or nil if GKE chooses them.
func locations(zones []string) pulumi.StringArrayInput {
	if len(zones) == 0 {
		return nil
	}
	return pulumi.ToStringArray(zones)
}

// nodeCount returns the fixed number of nodes, which GKE counts a zone, or nil.
func nodeCount(pool config.Pool) pulumi.IntPtrInput {
	if pool.Nodes == nil {
		return nil
	}
	return pulumi.Int(*pool.Nodes / pool.ZoneCount())
}

func autoscaling(pool config.Pool) container.NodePoolAutoscalingPtrInput {
	if pool.Autoscaling == nil {
		return nil
	}
	return container.NodePoolAutoscalingArgs{
		TotalMinNodeCount: pulumi.Int(pool.Autoscaling.MinNodes),
		TotalMaxNodeCount: pulumi.Int(pool.Autoscaling.MaxNodes),
		LocationPolicy:    pulumi.String(pool.Autoscaling.LocationPolicy),
	}
}

func queuedProvisioning(pool config.Pool) container.NodePoolQueuedProvisioningPtrInput {
	if !pool.QueuedProvisioning {
		return nil
	}
	return container.NodePoolQueuedProvisioningArgs{Enabled: pulumi.Bool(true)}
}

func placementPolicy(pool config.Pool) container.NodePoolPlacementPolicyPtrInput {
	if !pool.CompactPlacement {
		return nil
	}
	return container.NodePoolPlacementPolicyArgs{Type: pulumi.String("COMPACT")}
}
