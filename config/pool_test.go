package config_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"persia/config"
	"persia/internal/testkit"
)

// TestPoolRefused checks the message for each mistake.
func TestPoolRefused(t *testing.T) {
	testkit.Refused(t, []testkit.Refusal{
		// Node pools.
		{"pool name too long", edits{"persia:nodePools[2].name": strings.Repeat("p", 41), "persia:jobs[0].embeddingParameterServer.nodePool": strings.Repeat("p", 41)},
			"persia:nodePools[2].name", []string{"41 characters", "at most 40"}},
		{"pool name twice", edits{"persia:nodePools[1].name": "ps", "persia:jobs[0].dataloader.nodePool": "ps", "persia:jobs[0].embeddingWorker.nodePool": "ps"},
			"persia:nodePools[2].name", []string{`"ps"`, "nodePools[1]"}},
		{"pool called system", edits{"persia:nodePools[3]": edits{"name": "system", "machineType": "e2-standard-4", "nodes": 1}},
			"persia:nodePools[3].name", []string{`"system"`, "choose another"}},
		{"machine type unknown", edits{"persia:nodePools[0].machineType": "a2-highgpu-6g"}, "persia:nodePools[0].machineType", []string{`"a2-highgpu-6g": is not a known machine type, nor described in persia:machineTypes; write "a2-highgpu-8g"`}},
		{"machine type like none", edits{"persia:nodePools[1].machineType": "custom-8-1048576-extended"}, "persia:nodePools[1].machineType", []string{"custom-8", "predefined"}},
		{"zone of a pool in another region", edits{"persia:nodePools[2].zones": []any{"europe-west4-a"}}, "persia:nodePools[2].zones[0]", []string{"europe-west4-a", "region us-central1"}},
		{"nodes and autoscaling", edits{"persia:nodePools[1].nodes": 4}, "persia:nodePools[1].autoscaling", []string{"cannot be combined with nodes, which is 4", "remove one"}},
		{"neither nodes nor autoscaling", edits{"persia:nodePools[1].autoscaling": nil}, "persia:nodePools[1].nodes", []string{"Required", "or autoscaling"}},
		{"nodes zero", edits{"persia:nodePools[2].nodes": 0}, "persia:nodePools[2].nodes", []string{"0", "autoscaling with minNodes 0"}},
		{"nodes uneven", edits{"persia:nodePools[0].zones": []any{"us-central1-a", "us-central1-b", "us-central1-c"}, "persia:nodePools[0].nodes": 8},
			"persia:nodePools[0].nodes", []string{"8", "3 zones", "write 9"}},
		{"autoscaling upside down", edits{"persia:nodePools[1].autoscaling.minNodes": 5}, "persia:nodePools[1].autoscaling.maxNodes", []string{"4", "at least 5, as minNodes"}},
		{"GPU of another type", edits{"persia:nodePools[0].gpu.type": "nvidia-l4"}, "persia:nodePools[0].gpu", []string{"includes 8 × nvidia-tesla-a100", "remove gpu"}},
		{"GPU count of another type", edits{"persia:nodePools[0].gpu.count": 4}, "persia:nodePools[0].gpu", []string{"includes 8 × nvidia-tesla-a100"}},
		{"GPU on a machine that takes none", edits{"persia:nodePools[1].gpu": edits{"type": "nvidia-tesla-t4", "count": 1}},
			"persia:nodePools[1].gpu", []string{"n2-highmem-32 does not support GPUs", "an N1"}},
		{"GPU that N1 does not take", edits{"persia:nodePools[1].machineType": "n1-highmem-32", "persia:nodePools[1].gpu": edits{"type": "nvidia-l4", "count": 1}},
			"persia:nodePools[1].gpu.type", []string{"nvidia-l4", "cannot be attached to n1-highmem-32", "nvidia-tesla-t4"}},
		{"GPU count that N1 does not take", edits{"persia:nodePools[1].machineType": "n1-highmem-32", "persia:nodePools[1].gpu": edits{"type": "nvidia-tesla-v100", "count": 2}},
			"persia:nodePools[1].gpu.count", []string{"2", "supports 4 or 8"}},
		{"disk type that the machine does not take", edits{"persia:nodePools[1].disk.type": "hyperdisk-balanced"},
			"persia:nodePools[1].disk.type", []string{"not supported by n2-highmem-32", "pd-balanced"}},
		{"label of GKE", edits{"persia:nodePools[1].labels": edits{"cloud.google.com/team": "a"}},
			"persia:nodePools[1].labels[cloud.google.com/team]", []string{"google.com", "your own prefix"}},
		{"taint twice", edits{"persia:nodePools[1].taints[1]": edits{"key": "dedicated", "value": "x", "effect": "NoSchedule"}},
			"persia:nodePools[1].taints[1]", []string{"dedicated:NoSchedule", "taints[0]"}},
		{"taint of GKE", edits{"persia:nodePools[0].taints": []any{edits{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}}},
			"persia:nodePools[0].taints[0].key", []string{"nvidia.com/gpu", "is set where it is needed", "remove the taint"}},

		// NVIDIA driver.
		{"managed with a number", edits{"persia:nvidiaDriver": edits{"installer": "managed", "version": "550.90.12"}},
			"persia:nvidiaDriver.version", []string{"550.90.12", "DEFAULT or LATEST"}},
		{"Ubuntu with an unknown version", edits{"persia:nvidiaDriver.version": "550.90.07"}, "persia:nvidiaDriver.version", []string{"550.90.07", "550.90.12"}},
		{"Ubuntu installer on COS", edits{"persia:nodePools[0].imageType": "COS_CONTAINERD"},
			"persia:nodePools[0].imageType", []string{"COS_CONTAINERD", "ubuntu-daemonset", "write UBUNTU_CONTAINERD"}},
		{"LATEST on Ubuntu", edits{"persia:nvidiaDriver": edits{"installer": "managed", "version": "LATEST"}, "persia:nodePools[0].imageType": "UBUNTU_CONTAINERD"},
			"persia:nodePools[0].imageType", []string{"LATEST", "write COS_CONTAINERD"}},
	}, "pool name twice")
}

// TestDescribedMachineRefused checks the messages for mistakes in machine types.
func TestDescribedMachineRefused(t *testing.T) {
	const types = "persia:machineTypes"
	testkit.Refused(t, []testkit.Refusal{
		{"shape of a known type", edits{types: edits{"n2-standard-8": edits{"cpus": 8}}}, types + "[n2-standard-8]", []string{"remove it, or only its cpus, memory, and gpu"}},
		{"no vCPUs", edits{types: edits{"x9-standard-8": edits{"memory": "1Ti"}}}, types + "[x9-standard-8].cpus", []string{"write the number of vCPUs"}},
		{"no memory", edits{types: edits{"x9-standard-8": edits{"cpus": 8}}}, types + "[x9-standard-8].memory", []string{"write the memory"}},
		{"memory without a unit", edits{types: edits{"x9-standard-8": edits{"cpus": 8, "memory": "32"}}}, types + "[x9-standard-8].memory", []string{"without a unit"}},
		{"too many vCPUs", edits{types: edits{"x9-standard-8": edits{"cpus": 80000, "memory": "1Ti"}}}, types + "[x9-standard-8].cpus", []string{"at most 4096"}},
		{"GPU without a type", edits{types: edits{"x9-standard-8": edits{"cpus": 8, "memory": "1Ti", "gpu": edits{"count": 1}}}}, types + "[x9-standard-8].gpu.type", []string{"Required"}},
		{"GPU without a count", edits{types: edits{"x9-standard-8": edits{"cpus": 8, "memory": "1Ti", "gpu": edits{"type": "nvidia-x9"}}}}, types + "[x9-standard-8].gpu.count", []string{"at least 1"}},
		{"price whose sum is infinite", edits{types: edits{"n2-standard-8": edits{"hourlyPrice": 1e308}}}, types + "[n2-standard-8].hourlyPrice", []string{"1e+308", "at most 1000000"}},
		{"price below nothing", edits{types: edits{"n2-standard-8": edits{"spotHourlyPrice": -1}}}, types + "[n2-standard-8].spotHourlyPrice", []string{"at least 0"}},
		{"failures without end", edits{types: edits{"n2-standard-8": edits{"hoursBetweenFailures": 1e-300}}}, types + "[n2-standard-8].hoursBetweenFailures", []string{"at least 1"}},
		{"shape of a custom type", edits{types: edits{"n2-custom-8-32768": edits{"cpus": 8, "memory": "32Gi"}}}, types + "[n2-custom-8-32768]", []string{"the program knows the shape"}},
	})
}

// sparePool is the path of an additional pool without pods.
const sparePool = "persia:nodePools[3]"

// spare adds a pool with some settings.
func spare(settings edits) edits {
	pool := edits{"name": "spare", "machineType": "n2-standard-32", "nodes": 2}.And(settings)
	maps.DeleteFunc(pool, func(_ string, value any) bool { return value == nil })
	return edits{sparePool: pool}
}

// spareGPUs adds a GPU pool with GKE's own driver.
func spareGPUs(settings edits) edits {
	pool := edits{"machineType": "a2-highgpu-8g", "gpu": edits{"type": "nvidia-tesla-a100", "count": 8}}
	return spare(pool.And(settings)).And(edits{"persia:nvidiaDriver.installer": "managed"})
}

// queuedPool returns the settings of a pool with queued provisioning.
func queuedPool(settings edits) edits {
	return edits{"nodes": nil, "autoscaling": edits{"minNodes": 0, "maxNodes": 4}, "queuedProvisioning": true}.And(settings)
}

func TestNodePoolsRefused(t *testing.T) {
	testkit.Refused(t, []testkit.Refusal{
		// Provisioning.
		{"spot and queued provisioning", spare(queuedPool(edits{"spot": true})), sparePool + ".spot", []string{"cannot be combined with queuedProvisioning", "remove one of them"}},
		{"spot and a reservation", spare(edits{"spot": true, "reservation": "r"}), sparePool + ".spot", []string{"cannot be combined with reservation", "no spot machines", "remove one"}},
		{"spot of a series without", spare(edits{"machineType": "m3-ultramem-32", "spot": true}), sparePool + ".spot", []string{"m3-ultramem-32", "is not available for", "another series"}},
		{"queued provisioning and a reservation", spare(queuedPool(edits{"reservation": "r"})),
			sparePool + ".reservation", []string{`"r"`, "cannot be combined with queuedProvisioning", "remove one"}},
		{"queued provisioning and a fixed count", spare(edits{"queuedProvisioning": true}),
			sparePool + ".nodes", []string{"2", "cannot be combined with queuedProvisioning", "autoscaling with minNodes 0"}},
		{"queued provisioning of nodes that are always there", spare(queuedPool(edits{"autoscaling": edits{"minNodes": 1, "maxNodes": 4}})),
			sparePool + ".autoscaling.minNodes", []string{"1", "must be 0 with queuedProvisioning"}},
		{"queued provisioning over level zones", spare(queuedPool(edits{"autoscaling": edits{"minNodes": 0, "maxNodes": 4, "locationPolicy": "BALANCED"}})),
			sparePool + ".autoscaling.locationPolicy", []string{"BALANCED", "cannot be combined with queuedProvisioning", "write ANY"}},
		{"queued provisioning and compact placement", spare(queuedPool(edits{"compactPlacement": true})),
			sparePool + ".compactPlacement", []string{"cannot be combined with queuedProvisioning", "remove one"}},
		{"role on a pool of queued provisioning", spare(queuedPool(nil)).And(edits{"persia:jobs[0].dataloader.nodePool": "spare"}),
			"persia:jobs[0].dataloader.nodePool", []string{`"spare"`, "ProvisioningRequest", "another pool"}},
		{"compact placement over zones", spare(edits{"compactPlacement": true, "zones": []any{"us-central1-a", "us-central1-b"}}),
			sparePool + ".compactPlacement", []string{"requires a single zone", "write one"}},
		{"compact placement of a series without", spare(edits{"compactPlacement": true, "machineType": "e2-standard-8"}),
			sparePool + ".compactPlacement", []string{"e2-standard-8", "is not supported by the series", "c2"}},
		{"reservation over zones", spare(edits{"reservation": "r", "zones": []any{"us-central1-a", "us-central1-b"}}),
			sparePool + ".reservation", []string{`"r"`, "is of one zone", "nodes in us-central1-a and us-central1-b", "write the zone of the reservation"}},
		{"block of a reservation without its name", spare(edits{"reservation": "training/reservationBlocks/"}),
			sparePool + ".reservation", []string{"training/reservationBlocks/", "/reservationBlocks/B"}},

		// GPUs.
		{"fast socket without GPUs", spare(edits{"fastSocket": true}), sparePool + ".fastSocket", []string{"only for GPU pools", "remove it"}},
		{"fast socket on Ubuntu", spareGPUs(edits{"fastSocket": true, "imageType": "UBUNTU_CONTAINERD"}), sparePool + ".fastSocket", []string{"COS_CONTAINERD", "remove it"}},

		// Machines.
		{"Ubuntu on a machine with gvnic only", spare(edits{"machineType": "c3-standard-44", "imageType": "UBUNTU_CONTAINERD"}),
			sparePool + ".imageType", []string{"c3-standard-44", "whose only network interface is gVNIC", "COS_CONTAINERD"}},
		{"a machine of an unknown series without a disk type", spare(edits{"machineType": "x9-standard-8"}).And(describedMachine("x9-standard-8")),
			sparePool + ".disk.type", []string{"Required", "the series of x9-standard-8 is not in the catalogue"}},
		{"local SSDs of a described machine", spare(edits{"machineType": "c3-standard-8-lssd"}).And(describedMachine("c3-standard-8-lssd")),
			sparePool + ".localSsdCount", []string{"Required", "c3-standard-8-lssd", "replace the pool"}},
		{"the program's own label", spare(edits{"labels": edits{"persia.com/node-pool": "mine"}}),
			sparePool + `.labels[persia.com/node-pool]`, []string{"set on nodes by the program", "remove it"}},
		{"local SSDs of a series without", spare(edits{"machineType": "e2-standard-8", "localSsdCount": 1}),
			sparePool + ".localSsdCount", []string{"e2-standard-8", "is not supported by", "another machine type"}},
		{"number of local SSDs that the machine does not take", spare(edits{"localSsdCount": 2}), sparePool + ".localSsdCount", []string{"2", "n2-standard-32 supports 4, 8, 16 or 24"}},

		// Upgrades.
		{"upgrade of no node", spare(edits{"upgrade": edits{"maxSurge": 0, "maxUnavailable": 0}}),
			sparePool + ".upgrade.maxUnavailable", []string{"makes 0 together with maxSurge", "from 1 to 20"}},
		{"too many nodes at once", spare(edits{"upgrade": edits{"maxSurge": 15, "maxUnavailable": 6}}),
			sparePool + ".upgrade.maxUnavailable", []string{"makes 21 together with maxSurge", "from 1 to 20"}},

		// Labels and taints that GKE or the program sets.
		{"taint of spot by hand", spare(edits{"spot": true, "taints": []any{edits{"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NoSchedule"}}}),
			sparePool + ".taints[0].key", []string{"gke-spot", "is set where it is needed", "remove the taint"}},
		{"taint of queued provisioning by hand", spare(queuedPool(edits{"taints": []any{edits{"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NoSchedule"}}})),
			sparePool + ".taints[0].key", []string{"gke-queued", "is set where it is needed", "remove the taint"}},
	})
}

func TestNodePoolsAccepted(t *testing.T) {
	testkit.Accepted(t, map[string]edits{
		"spot":                          spare(edits{"spot": true}),
		"queued provisioning":           spareGPUs(queuedPool(nil)),
		"reservation":                   spareGPUs(edits{"reservation": "a100"}),
		"block of another project's":    spareGPUs(edits{"reservation": "projects/other-project/reservations/a100/reservationBlocks/block-1"}),
		"compact placement":             spareGPUs(edits{"compactPlacement": true, "fastSocket": true}),
		"fixed local SSDs":              spareGPUs(edits{"machineType": "a3-highgpu-8g", "gpu": edits{"type": "nvidia-h100-80gb", "count": 8}, "localSsdCount": 16}),
		"custom machines":               spare(edits{"machineType": "n2-custom-36-36864"}),
		"twenty nodes at once":          spare(edits{"upgrade": edits{"maxSurge": 20}}),
		"taint of spot on another pool": spare(edits{"taints": []any{edits{"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NoSchedule"}}}),
		"a machine of no known type":    spare(edits{"machineType": "z9-metal-8", "localSsdCount": 3, "disk": edits{"type": "hyperdisk-balanced"}, "compactPlacement": true}).And(describedMachine("z9-metal-8")),
	})
}

func describedMachine(name string) edits {
	return edits{"persia:machineTypes": edits{name: edits{"cpus": 8, "memory": "32Gi"}}}
}

// TestDefaultsOfNodePools checks the defaults of a pool.
func TestDefaultsOfNodePools(t *testing.T) {
	load := func(stack edits) config.Pool {
		s := testkit.Must(testkit.Load(t, stack))(t)
		return s.NodePools[3]
	}
	zero, one, two, six, twenty := 0, 1, 2, 6, 20
	for name, c := range map[string]struct {
		stack edits
		want  config.Upgrade
	}{
		"machines that are there": {spare(nil), config.Upgrade{MaxSurge: &one, MaxUnavailable: &zero}},
		"GPUs":                    {spareGPUs(nil), config.Upgrade{MaxSurge: &zero, MaxUnavailable: &one}},
		"reserved machines":       {spare(edits{"reservation": "r"}), config.Upgrade{MaxSurge: &zero, MaxUnavailable: &one}},
		"memory-optimized":        {spare(edits{"machineType": "m2-ultramem-416"}), config.Upgrade{MaxSurge: &zero, MaxUnavailable: &one}},
		"a hundred nodes":         {spare(edits{"nodes": 102}), config.Upgrade{MaxSurge: &six, MaxUnavailable: &zero}},
		"a hundred nodes of GPUs": {spareGPUs(edits{"nodes": nil, "autoscaling": edits{"minNodes": 0, "maxNodes": 102}}), config.Upgrade{MaxSurge: &zero, MaxUnavailable: &six}},
		"thousands of nodes":      {spare(edits{"nodes": 900}), config.Upgrade{MaxSurge: &twenty, MaxUnavailable: &zero}},
		"surge given":             {spareGPUs(edits{"upgrade": edits{"maxSurge": 2}}), config.Upgrade{MaxSurge: &two, MaxUnavailable: &zero}},
	} {
		assert.Equal(t, c.want, load(c.stack).Upgrade, name)
	}
}
