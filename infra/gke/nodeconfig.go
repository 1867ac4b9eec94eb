package gke

import (
	"maps"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/gcp"
	"persia/infra/gpu"
)

// nodeConfig describes the machines of a pool.
func nodeConfig(pool config.Pool, args Args, identity *nodeIdentity) container.NodePoolNodeConfigArgs {
	node := container.NodePoolNodeConfigArgs{
		MachineType:                    pulumi.String(pool.MachineType),
		ImageType:                      pulumi.String(pool.ImageType),
		DiskType:                       pulumi.String(pool.Disk.Type),
		DiskSizeGb:                     pulumi.Int(pool.Disk.SizeGB),
		BootDiskKmsKey:                 optional(args.Cluster.Encryption.BootDisks),
		EphemeralStorageLocalSsdConfig: ephemeralStorage(pool),
		Spot:                           pulumi.Bool(pool.Spot),
		ReservationAffinity:            reservationAffinity(pool),
		Labels:                         pulumi.ToStringMap(labels(pool)),
		Taints:                         taints(ownTaints(pool)),
		ServiceAccount:                 identity.email,
		OauthScopes:                    nodeScopes(),
		Metadata:                       pulumi.StringMap{"disable-legacy-endpoints": pulumi.String("true")},
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
	if streamsImages(pool, args.Cluster) {
		node.GcfsConfig = container.NodePoolNodeConfigGcfsConfigArgs{Enabled: pulumi.Bool(true)}
	}
	if pool.FastSocket {
		node.FastSocket = container.NodePoolNodeConfigFastSocketArgs{Enabled: pulumi.Bool(true)}
	}
	if pool.GPU != nil {
		node.GuestAccelerators = gpu.Accelerators(*pool.GPU, args.NVIDIADriver)
	}
	return node
}

// labels returns the user's, and the program's own.
func labels(pool config.Pool) map[string]string {
	all := map[string]string{config.PoolLabel: pool.Name}
	maps.Copy(all, pool.Labels)
	return all
}

// optional returns a text, or nil if it is empty.
func optional(text string) pulumi.StringPtrInput {
	if text == "" {
		return nil
	}
	return pulumi.String(text)
}

func ephemeralStorage(pool config.Pool) container.NodePoolNodeConfigEphemeralStorageLocalSsdConfigPtrInput {
	if pool.LocalSSDs == 0 {
		return nil
	}
	return container.NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs{LocalSsdCount: pulumi.Int(pool.LocalSSDs)}
}

// reservationAffinity keeps the nodes of queued provisioning from reservations, and takes the nodes
// of a pool with a reservation from that reservation only.
func reservationAffinity(pool config.Pool) container.NodePoolNodeConfigReservationAffinityPtrInput {
	switch {
	case pool.QueuedProvisioning:
		return container.NodePoolNodeConfigReservationAffinityArgs{
			ConsumeReservationType: pulumi.String("NO_RESERVATION"),
		}
	case pool.Reservation != "":
		return container.NodePoolNodeConfigReservationAffinityArgs{
			ConsumeReservationType: pulumi.String("SPECIFIC_RESERVATION"),
			Key:                    pulumi.String("compute.googleapis.com/reservation-name"),
			Values:                 pulumi.StringArray{pulumi.String(pool.Reservation)},
		}
	default:
		return nil
	}
}

// streamsImages reports whether the nodes start containers before their image is complete. Only
// Container-Optimized OS can do so.
func streamsImages(pool config.Pool, cluster config.Cluster) bool {
	return cluster.ImageStreaming && pool.ImageType == gcp.ImageCOS
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
