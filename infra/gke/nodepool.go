package gke

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/infra/gpu"
)

func newNodePools(ctx *pulumi.Context, name string, args Args, cluster *container.Cluster, identity *nodeIdentity, child pulumi.ResourceOption) ([]pulumi.Resource, error) {
	var pools []pulumi.Resource
	for _, pool := range args.NodePools {
		registered, err := container.NewNodePool(ctx, name+"-"+pool.Name, &container.NodePoolArgs{
			Project:       pulumi.String(args.Project),
			Cluster:       cluster.Name,
			Location:      pulumi.String(args.Cluster.Region),
			Name:          pulumi.String(pool.Name),
			NodeLocations: pulumi.ToStringArray(pool.Zones),
			NodeCount:     nodeCount(pool),
			Autoscaling:   autoscaling(pool),
			NodeConfig:    nodeConfig(pool, args.NVIDIADriver, identity),
			Management: container.NodePoolManagementArgs{
				AutoRepair: pulumi.Bool(true),
				// A release channel does not allow otherwise.
				AutoUpgrade: pulumi.Bool(true),
			},
		},
			child,
			// Read back as the number of nodes, it would replace the pool.
			pulumi.IgnoreChanges([]string{"initialNodeCount"}),
			pulumi.Timeouts(&pulumi.CustomTimeouts{Create: "60m", Update: "120m", Delete: "60m"}))
		if err != nil {
			return nil, err
		}
		pools = append(pools, registered)
	}
	return pools, nil
}

// nodeCount is the fixed number of nodes, which GKE counts a zone, or nil.
func nodeCount(pool config.NodePool) pulumi.IntPtrInput {
	if pool.Nodes == nil {
		return nil
	}
	return pulumi.Int(*pool.Nodes / len(pool.Zones))
}

func autoscaling(pool config.NodePool) container.NodePoolAutoscalingPtrInput {
	if pool.Autoscaling == nil {
		return nil
	}
	// GPUs are taken in whichever zone has them; others are kept level.
	policy := "BALANCED"
	if pool.GPU != nil {
		policy = "ANY"
	}
	return container.NodePoolAutoscalingArgs{
		TotalMinNodeCount: pulumi.Int(pool.Autoscaling.MinNodes),
		TotalMaxNodeCount: pulumi.Int(pool.Autoscaling.MaxNodes),
		LocationPolicy:    pulumi.String(policy),
	}
}

func nodeConfig(pool config.NodePool, driver config.NVIDIADriver, identity *nodeIdentity) container.NodePoolNodeConfigArgs {
	node := container.NodePoolNodeConfigArgs{
		MachineType:    pulumi.String(pool.MachineType),
		ImageType:      pulumi.String(pool.ImageType),
		DiskType:       pulumi.String(pool.Disk.Type),
		DiskSizeGb:     pulumi.Int(pool.Disk.SizeGB),
		Labels:         pulumi.ToStringMap(pool.Labels),
		Taints:         taints(pool.Taints),
		ServiceAccount: identity.email,
		OauthScopes:    nodeScopes(),
		Metadata:       pulumi.StringMap{"disable-legacy-endpoints": pulumi.String("true")},
		WorkloadMetadataConfig: container.NodePoolNodeConfigWorkloadMetadataConfigArgs{
			Mode: pulumi.String("GKE_METADATA"),
		},
		ShieldedInstanceConfig: container.NodePoolNodeConfigShieldedInstanceConfigArgs{
			EnableIntegrityMonitoring: pulumi.Bool(true),
			EnableSecureBoot:          pulumi.Bool(pool.GPU == nil || gpu.SignedDriver(driver)),
		},
	}
	if pool.GPU != nil {
		node.GuestAccelerators = gpu.Accelerators(*pool.GPU, driver)
	}
	return node
}

// taintEffects are Kubernetes' taint effects as GKE's API spells them.
var taintEffects = map[string]string{
	"NoSchedule":       "NO_SCHEDULE",
	"PreferNoSchedule": "PREFER_NO_SCHEDULE",
	"NoExecute":        "NO_EXECUTE",
}

func taints(taints []config.Taint) container.NodePoolNodeConfigTaintArray {
	converted := container.NodePoolNodeConfigTaintArray{}
	for _, taint := range taints {
		converted = append(converted, container.NodePoolNodeConfigTaintArgs{
			Key:    pulumi.String(taint.Key),
			Value:  pulumi.String(taint.Value),
			Effect: pulumi.String(taintEffects[string(taint.Effect)]),
		})
	}
	return converted
}
