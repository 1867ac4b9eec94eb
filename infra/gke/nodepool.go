package gke

import (
	_ "embed"
	"fmt"
	"slices"
	"time"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"persia/config"
	"persia/gcp"
	"persia/infra/gpu"
	"persia/kube"
)

// newNodePools registers the node pools. While the cluster is protected from deletion, so is each pool: Pulumi refuses
// a change that would replace it, and its removal. To replace a pool, set the cluster's deletionProtection to false
// along with the change; to remove one, set it to false and run `pulumi up`, and remove the pool then.
func newNodePools(ctx *pulumi.Context, name string, args Args, cluster *container.Cluster, identity *nodeIdentity,
	child pulumi.ResourceOption) ([]pulumi.Resource, error) {
	// GKE taints a GPU pool only if the cluster has a pool without GPUs when it creates the GPU
	// pool, and not later (GKE, "Run GPUs in Standard node pools").
	var pools, system []pulumi.Resource
	for _, pool := range args.NodePools {
		var after []pulumi.Resource
		if pool.GPU != nil {
			after = system
		}
		inputs := &container.NodePoolArgs{
			Project:        pulumi.String(args.Project),
			Cluster:        cluster.Name,
			Location:       pulumi.String(args.Cluster.Region),
			Name:           pulumi.String(pool.Name),
			NodeLocations:  locations(pool.Zones),
			MaxPodsPerNode: pulumi.Int(pool.MaxPodsPerNode),
			NodeConfig:     nodeConfig(pool, args, identity),
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
		}
		if pool.Nodes != nil {
			inputs.NodeCount = pulumi.Int(*pool.Nodes / pool.ZoneCount()) // which GKE counts a zone
		}
		if scaling := pool.Autoscaling; scaling != nil {
			inputs.Autoscaling = container.NodePoolAutoscalingArgs{
				TotalMinNodeCount: pulumi.Int(scaling.MinNodes),
				TotalMaxNodeCount: pulumi.Int(scaling.MaxNodes),
				LocationPolicy:    pulumi.String(scaling.LocationPolicy),
			}
		}
		if pool.QueuedProvisioning {
			inputs.QueuedProvisioning = container.NodePoolQueuedProvisioningArgs{Enabled: pulumi.Bool(true)}
		}
		if pool.CompactPlacement {
			inputs.PlacementPolicy = container.NodePoolPlacementPolicyArgs{Type: pulumi.String("COMPACT")}
		}
		registered, err := container.NewNodePool(ctx, name+"-"+pool.Name, inputs,
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
// GKE returns the numbers of nodes: the first would replace the pool, and the second would undo the autoscaler's work.
// GKE sets the kubelet's configuration and labels of its own on every pool. Before 6.18.1 the provider treats them as
// the program's, and GKE refuses its update to remove them because the update names no field.
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

// nodeConfig describes the machines of a pool.
func nodeConfig(pool config.Pool, args Args, identity *nodeIdentity) container.NodePoolNodeConfigArgs {
	node := container.NodePoolNodeConfigArgs{
		MachineType:    pulumi.String(pool.MachineType),
		ImageType:      pulumi.String(pool.ImageType),
		DiskType:       pulumi.String(pool.Disk.Type),
		DiskSizeGb:     pulumi.Int(pool.Disk.SizeGB),
		BootDiskKmsKey: optional(args.Cluster.Encryption.BootDisks),
		Spot:           pulumi.Bool(pool.Spot),
		Labels:         pulumi.ToStringMap(nodeLabels(pool)),
		Taints:         taints(ownTaints(pool)),
		ServiceAccount: identity.email,
		OauthScopes:    nodeScopes(),
		Metadata:       pulumi.StringMap{"disable-legacy-endpoints": pulumi.String("true")},
		WorkloadMetadataConfig: container.NodePoolNodeConfigWorkloadMetadataConfigArgs{
			Mode: pulumi.String("GKE_METADATA"),
		},
		ShieldedInstanceConfig: container.NodePoolNodeConfigShieldedInstanceConfigArgs{
			EnableIntegrityMonitoring: pulumi.Bool(true),
			EnableSecureBoot:          pulumi.Bool(pool.HasSecureBoot(args.NVIDIADriver)),
		},
	}
	// What is off is not named here: no recorded answer shows what GKE makes of it, and
	// left out of an answer it would replace the pool in every plan.
	if pool.HasGVNIC() {
		node.Gvnic = container.NodePoolNodeConfigGvnicArgs{Enabled: pulumi.Bool(true)}
	}
	if args.Cluster.ImageStreaming && pool.ImageType == gcp.ImageCOS { // no other image can do so
		node.GcfsConfig = container.NodePoolNodeConfigGcfsConfigArgs{Enabled: pulumi.Bool(true)}
	}
	if pool.FastSocket {
		node.FastSocket = container.NodePoolNodeConfigFastSocketArgs{Enabled: pulumi.Bool(true)}
	}
	if pool.LocalSSDs > 0 {
		node.EphemeralStorageLocalSsdConfig = container.NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs{
			LocalSsdCount: pulumi.Int(pool.LocalSSDs)}
	}
	// The nodes of queued provisioning take no reservation, and the nodes of a pool with one take no other.
	switch {
	case pool.QueuedProvisioning:
		node.ReservationAffinity = container.NodePoolNodeConfigReservationAffinityArgs{ConsumeReservationType: pulumi.String("NO_RESERVATION")}
	case pool.Reservation != "":
		node.ReservationAffinity = container.NodePoolNodeConfigReservationAffinityArgs{
			ConsumeReservationType: pulumi.String("SPECIFIC_RESERVATION"),
			Key:                    pulumi.String("compute.googleapis.com/reservation-name"),
			Values:                 pulumi.StringArray{pulumi.String(pool.Reservation)},
		}
	}
	if pool.GPU != nil {
		node.GuestAccelerators = gpu.Accelerators(*pool.GPU, args.NVIDIADriver)
	}
	return node
}

// nodeLabels returns the labels that the program gives to the nodes of a pool.
func nodeLabels(pool config.Pool) map[string]string {
	own := labels.Set{config.PoolLabel: pool.Name}
	if key, list := pool.ListLabel(); list != "" {
		own[key] = list
	}
	return labels.Merge(own, pool.Labels)
}

// optional returns a text, or nil if it is empty.
func optional(text string) pulumi.StringPtrInput {
	if text == "" {
		return nil
	}
	return pulumi.String(text)
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

// PlacementOn pins pods to a node pool and tolerates its taints, including the taints that GKE adds.
func PlacementOn(pool config.Pool) kube.Placement {
	placement := kube.Placement{NodeSelector: map[string]string{gcp.LabelNodePool: pool.Name}}
	if key, list := pool.ListLabel(); list != "" {
		placement.NodeSelector = map[string]string{key: list}
		pool.Spot = true // so that a pool with spot machines, added to the list, changes no pod
	}
	all := ownTaints(pool)
	if pool.QueuedProvisioning {
		all = append(all, config.Taint{Key: gcp.TaintQueued, Value: "true", Effect: corev1.TaintEffectNoSchedule})
	}
	if pool.GPU != nil {
		all = append(all, config.Taint{Key: gcp.TaintGPU, Value: gcp.TaintGPUValue, Effect: corev1.TaintEffectNoSchedule})
	}
	for _, taint := range all {
		placement.Tolerations = append(placement.Tolerations, corev1.Toleration{
			Key:      taint.Key,
			Operator: corev1.TolerationOpEqual,
			Value:    taint.Value,
			Effect:   taint.Effect,
		})
	}
	return placement
}

// ownTaints returns the taints that the program gives to a pool. One keeps pods off nodes that Google may reclaim, and one
// keeps out pods that do not select the pool's list.
func ownTaints(pool config.Pool) []config.Taint {
	all := slices.Clip(pool.Taints)
	if pool.Spot {
		all = append(all, config.Taint{Key: gcp.TaintSpot, Value: "true", Effect: corev1.TaintEffectNoSchedule})
	}
	if key, list := pool.ListLabel(); list != "" {
		all = append(all, config.Taint{Key: key, Value: list, Effect: corev1.TaintEffectNoSchedule})
	}
	return all
}

//go:embed computeclass.yaml
var computeClass string

// NewComputeClasses registers a compute class for each list of pools (GKE, "ComputeClass" CRD, 1.30.3-gke.1451000), unless the
// provisioner asks for their nodes.
func NewComputeClasses(r *kube.Registrar, lists []config.Pool) []pulumi.CustomResource {
	var classes []pulumi.CustomResource
	lists = slices.DeleteFunc(lists, func(list config.Pool) bool { return list.QueuedProvisioning })
	if len(lists) == 0 {
		return nil
	}
	objects := r.Component("persia:gke:ComputeClasses", "compute-classes")
	for _, list := range lists {
		_, class := list.ListLabel()
		manifest := kube.Manifest(computeClass, map[string]any{"Name": class, "Pools": list.Listed()})[0]
		classes = append(classes, objects.Add(class, manifest, nil))
	}
	return classes
}
