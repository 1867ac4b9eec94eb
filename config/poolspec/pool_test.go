package poolspec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/stacktest"
)

type edits = stacktest.Edits

// TestRefused checks the message for each mistake.
func TestRefused(t *testing.T) {
	stacktest.Refused(t, []stacktest.Refusal{
		// Node pools.
		{"pool name too long", edits{"persia:nodePools[2].name": strings.Repeat("p", 41), "persia:jobs[0].embeddingParameterServer.nodePool": strings.Repeat("p", 41)},
			"persia:nodePools[2].name", []string{"41 characters", "at most 40"}},
		{"pool name twice", edits{"persia:nodePools[1].name": "ps", "persia:jobs[0].dataloader.nodePool": "ps", "persia:jobs[0].embeddingWorker.nodePool": "ps"},
			"persia:nodePools[2].name", []string{`"ps"`, "nodePools[1]"}},
		{"pool called system", edits{"persia:nodePools[3]": edits{"name": "system", "machineType": "e2-standard-4", "nodes": 1}},
			"persia:nodePools[3].name", []string{`"system"`, "choose another"}},
		{"machine type unknown", edits{"persia:nodePools[0].machineType": "a2-highgpu-6g"},
			"persia:nodePools[0].machineType", []string{"a2-highgpu-6g", "a2-highgpu-4g", "a2-highgpu-8g"}},
		{"machine type like none", edits{"persia:nodePools[1].machineType": "custom-8-1048576-extended"},
			"persia:nodePools[1].machineType", []string{"custom-8", "predefined"}},
		{"zone of a pool in another region", edits{"persia:nodePools[2].zones": []any{"europe-west4-a"}},
			"persia:nodePools[2].zones[0]", []string{"europe-west4-a", "region us-central1"}},
		{"nodes and autoscaling", edits{"persia:nodePools[1].nodes": 4},
			"persia:nodePools[1].autoscaling", []string{"cannot be combined with nodes, which is 4", "either"}},
		{"neither nodes nor autoscaling", edits{"persia:nodePools[1].autoscaling": nil},
			"persia:nodePools[1].nodes", []string{"Required", "or autoscaling"}},
		{"nodes negative", edits{"persia:nodePools[2].nodes": -1},
			"persia:nodePools[2].nodes", []string{"-1", "at least 1"}},
		{"spare nodes negative", edits{"persia:nodePools[2].spareNodes": -1},
			"persia:nodePools[2].spareNodes", []string{"-1", "must not be negative"}},
		{"nodes zero", edits{"persia:nodePools[2].nodes": 0},
			"persia:nodePools[2].nodes", []string{"0", "remove the pool"}},
		{"more nodes than GKE takes", edits{"persia:nodePools[1].autoscaling.maxNodes": 15001},
			"persia:nodePools[1].autoscaling.maxNodes", []string{"15001", "at most 15000"}},
		{"nodes uneven", edits{"persia:nodePools[0].zones": []any{"us-central1-a", "us-central1-b", "us-central1-c"}, "persia:nodePools[0].nodes": 8},
			"persia:nodePools[0].nodes", []string{"8", "3 zones", "write 6 or 9"}},
		{"fewer nodes than zones", edits{"persia:nodePools[0].zones": []any{"us-central1-a", "us-central1-b", "us-central1-c"}},
			"persia:nodePools[0].nodes", []string{"2", "3 zones", "write 3, or use fewer zones"}},
		{"autoscaling from below zero", edits{"persia:nodePools[1].autoscaling.minNodes": -1},
			"persia:nodePools[1].autoscaling.minNodes", []string{"-1", "at least 0"}},
		{"autoscaling upside down", edits{"persia:nodePools[1].autoscaling.minNodes": 5},
			"persia:nodePools[1].autoscaling.maxNodes", []string{"4", "minNodes, which is 5"}},
		{"autoscaling to nothing", edits{"persia:nodePools[1].autoscaling.maxNodes": 0},
			"persia:nodePools[1].autoscaling.maxNodes", []string{"0", "remove the pool"}},
		{"GPU of another type", edits{"persia:nodePools[0].gpu.type": "nvidia-l4"},
			"persia:nodePools[0].gpu.type", []string{"nvidia-l4", "includes nvidia-tesla-a100"}},
		{"GPU count of another type", edits{"persia:nodePools[0].gpu.count": 4},
			"persia:nodePools[0].gpu.count", []string{"4", "includes 8"}},
		{"GPU on a machine that takes none", edits{"persia:nodePools[1].gpu": edits{"type": "nvidia-tesla-t4", "count": 1}},
			"persia:nodePools[1].gpu", []string{"n2-highmem-32 does not support GPUs", "n1"}},
		{"GPU that N1 does not take", edits{"persia:nodePools[1].machineType": "n1-highmem-32", "persia:nodePools[1].gpu": edits{"type": "nvidia-l4", "count": 1}},
			"persia:nodePools[1].gpu.type", []string{"nvidia-l4", "nvidia-tesla-t4 or nvidia-tesla-v100"}},
		{"GPU count that N1 does not take", edits{"persia:nodePools[1].machineType": "n1-highmem-32", "persia:nodePools[1].gpu": edits{"type": "nvidia-tesla-v100", "count": 2}},
			"persia:nodePools[1].gpu.count", []string{"2", "supports 4 or 8"}},
		{"GPU without a type", edits{"persia:nodePools[1].machineType": "n1-highmem-32", "persia:nodePools[1].gpu": edits{"count": 2}},
			"persia:nodePools[1].gpu.type", []string{"Required", "nvidia-tesla-t4"}},
		{"image type unknown", edits{"persia:nodePools[2].imageType": "COS"},
			"persia:nodePools[2].imageType", []string{`"COS"`, "COS_CONTAINERD or UBUNTU_CONTAINERD"}},
		{"disk type unknown", edits{"persia:nodePools[2].disk.type": "ssd"},
			"persia:nodePools[2].disk.type", []string{`"ssd"`, "pd-ssd"}},
		{"disk type that the machine does not take", edits{"persia:nodePools[1].disk.type": "hyperdisk-balanced"},
			"persia:nodePools[1].disk.type", []string{"not supported by n2-highmem-32", "pd-balanced"}},
		{"disk too small", edits{"persia:nodePools[1].disk.sizeGb": 5},
			"persia:nodePools[1].disk.sizeGb", []string{"5", "from 12, the size of the node image, to 65536"}},
		{"label key invalid", edits{"persia:nodePools[1].labels": edits{"a b": "c"}},
			"persia:nodePools[1].labels[a b]", []string{`"a b"`, "alphanumeric"}},
		{"label value invalid", edits{"persia:nodePools[1].labels.team": "a b"},
			"persia:nodePools[1].labels[team]", []string{`"a b"`, "a valid label"}},
		{"label of GKE", edits{"persia:nodePools[1].labels": edits{"cloud.google.com/team": "a"}},
			"persia:nodePools[1].labels[cloud.google.com/team]", []string{"google.com", "your own prefix"}},
		{"taint without a key", edits{"persia:nodePools[1].taints[0].key": ""},
			"persia:nodePools[1].taints[0].key", []string{"Required"}},
		{"taint effect unknown", edits{"persia:nodePools[1].taints[0].effect": "NO_SCHEDULE"},
			"persia:nodePools[1].taints[0].effect", []string{"NO_SCHEDULE", "NoSchedule, PreferNoSchedule or NoExecute"}},
		{"taint value invalid", edits{"persia:nodePools[1].taints[0].value": "a b"},
			"persia:nodePools[1].taints[0].value", []string{`"a b"`, "a valid label"}},
		{"taint twice", edits{"persia:nodePools[1].taints[1]": edits{"key": "dedicated", "value": "x", "effect": "NoSchedule"}},
			"persia:nodePools[1].taints[1]", []string{"dedicated:NoSchedule", "taints[0]"}},
		{"taint of GKE", edits{"persia:nodePools[0].taints": []any{edits{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}}},
			"persia:nodePools[0].taints[0].key", []string{"nvidia.com/gpu", "is set by GKE on every GPU pool", "remove the taint"}},

		// NVIDIA driver.
		{"installer unknown", edits{"persia:nvidiaDriver.installer": "ubuntu"},
			"persia:nvidiaDriver.installer", []string{`"ubuntu"`, "ubuntu-daemonset"}},
		{"managed with a number", edits{"persia:nvidiaDriver": edits{"installer": "managed", "version": "550.90.12"}},
			"persia:nvidiaDriver.version", []string{"550.90.12", "DEFAULT or LATEST"}},
		{"Ubuntu with an unknown version", edits{"persia:nvidiaDriver.version": "550.90.07"},
			"persia:nvidiaDriver.version", []string{"550.90.07", "550.90.12"}},
		{"Ubuntu with a version that GKE no longer loads", edits{"persia:nvidiaDriver.version": "525.105.17"},
			"persia:nvidiaDriver.version", []string{"525.105.17", "does not work on GKE 1.31", "write 535.161.07, 550.90.12, 570.124.06 or 580.65.06"}},
		{"COS with a version", edits{"persia:nvidiaDriver": edits{"installer": "cos-daemonset", "version": "550.90.12"}},
			"persia:nvidiaDriver.version", []string{"image determines", `remove "550.90.12"`}},
		{"Ubuntu installer on COS", edits{"persia:nodePools[0].imageType": "COS_CONTAINERD"},
			"persia:nodePools[0].imageType", []string{"COS_CONTAINERD", "ubuntu-daemonset", "write UBUNTU_CONTAINERD"}},
		{"COS installer on Ubuntu", edits{"persia:nvidiaDriver.installer": "cos-daemonset", "persia:nodePools[0].imageType": "UBUNTU_CONTAINERD"},
			"persia:nodePools[0].imageType", []string{"UBUNTU_CONTAINERD", "cos-daemonset", "write COS_CONTAINERD"}},
		{"LATEST on Ubuntu", edits{"persia:nvidiaDriver": edits{"installer": "managed", "version": "LATEST"}, "persia:nodePools[0].imageType": "UBUNTU_CONTAINERD"},
			"persia:nodePools[0].imageType", []string{"LATEST", "write COS_CONTAINERD"}},
	}, "more nodes than GKE takes", "pool name twice")
}

// TestDescribedMachineRefused checks the messages for mistakes in machine types.
func TestDescribedMachineRefused(t *testing.T) {
	for _, c := range []struct {
		name      string
		described edits
		path      string
		says      string
	}{
		{"shape of a known type", edits{"n2-standard-8": edits{"cpus": 8}}, "[n2-standard-8]", "remove cpus, memory, and gpu"},
		{"no vCPUs", edits{"x9-standard-8": edits{"memory": "1Ti"}}, "[x9-standard-8].cpus", "write the number of vCPUs"},
		{"no memory", edits{"x9-standard-8": edits{"cpus": 8}}, "[x9-standard-8].memory", "write the memory"},
		{"memory without a unit", edits{"x9-standard-8": edits{"cpus": 8, "memory": "32"}}, "[x9-standard-8].memory", "write a unit"},
		{"memory that is no quantity", edits{"x9-standard-8": edits{"cpus": 8, "memory": "32GB"}}, "[x9-standard-8].memory", "32GB"},
		{"too many vCPUs", edits{"x9-standard-8": edits{"cpus": 80000, "memory": "1Ti"}}, "[x9-standard-8].cpus", "from 1 to 4096"},
		{"GPU without a type", edits{"x9-standard-8": edits{"cpus": 8, "memory": "1Ti", "gpu": edits{"count": 1}}}, "[x9-standard-8].gpu.type", "accelerator type"},
		{"GPU without a count", edits{"x9-standard-8": edits{"cpus": 8, "memory": "1Ti", "gpu": edits{"type": "nvidia-x9"}}}, "[x9-standard-8].gpu.count", "from 1 to 64"},
		{"negative price", edits{"n2-standard-8": edits{"hourlyPrice": -1}}, "[n2-standard-8].hourlyPrice", "more than 0"},
		{"price in quotes", edits{"n2-standard-8": edits{"spotHourlyPrice": "0.5"}}, "[n2-standard-8].spotHourlyPrice", "a number, without quotes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := stacktest.Load(t, edits{"persia:machineTypes": c.described})
			require.Error(t, err)
			assert.Contains(t, err.Error(), "\npersia:machineTypes"+c.path+": ")
			assert.ErrorContains(t, err, c.says)
		})
	}
}
