package gcp

import (
	"cmp"
	"maps"
	"slices"
)

// GPUResource is the name of GPUs among a node's resources.
const GPUResource = "nvidia.com/gpu"

// gpu is a type of GPU.
type gpu struct {
	// quota is what quotas call it, and ownQuota says that it does not share
	// GPUS_PER_GPU_FAMILY.
	quota    string
	ownQuota bool
	// partitions say how many instances of a size (MIG) one GPU makes
	// (GoogleCloudPlatform/container-engine-accelerators, pkg/gpu/nvidia/mig).
	partitions map[string]int
	// attachable says how many can be attached to an N1 machine of how many vCPUs
	// (Compute Engine, "GPU machine types", N1).
	attachable []attachment
}

type attachment struct{ count, maxCPUs int }

// gpus are the types of GPU by their name at Compute Engine.
var gpus = map[string]gpu{
	"nvidia-a100-80gb": {quota: "NVIDIA_A100_80GB", ownQuota: true,
		partitions: map[string]int{"1g.10gb": 7, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1}},
	"nvidia-b200": {quota: "NVIDIA_B200"},
	"nvidia-h100-80gb": {quota: "NVIDIA_H100",
		partitions: map[string]int{"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1}},
	"nvidia-h100-mega-80gb": {quota: "NVIDIA_H100_MEGA",
		partitions: map[string]int{"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1}},
	"nvidia-h200-141gb": {quota: "NVIDIA_H200",
		partitions: map[string]int{"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1}},
	"nvidia-l4":           {quota: "NVIDIA_L4", ownQuota: true},
	"nvidia-rtx-pro-6000": {quota: "NVIDIA_RTX_PRO_6000"},
	"nvidia-tesla-a100": {quota: "NVIDIA_A100", ownQuota: true,
		partitions: map[string]int{"1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "7g.40gb": 1}},
	"nvidia-tesla-p100": {quota: "NVIDIA_P100", ownQuota: true, attachable: []attachment{{1, 16}, {2, 32}, {4, 96}}},
	"nvidia-tesla-p4":   {quota: "NVIDIA_P4", ownQuota: true, attachable: []attachment{{1, 24}, {2, 48}, {4, 96}}},
	"nvidia-tesla-t4":   {quota: "NVIDIA_T4", ownQuota: true, attachable: []attachment{{1, 48}, {2, 48}, {4, 96}}},
	"nvidia-tesla-v100": {quota: "NVIDIA_V100", ownQuota: true, attachable: []attachment{{1, 12}, {2, 24}, {4, 48}, {8, 96}}},
}

// Partitions is how many instances of a size one GPU of a type makes. It is 0 for
// a size that the type does not have.
func Partitions(gpuType, size string) int {
	return gpus[gpuType].partitions[size]
}

// PartitionSizes are the sizes of the instances that a type of GPU can be divided
// into, those that make the most first. A type that cannot be divided has none.
func PartitionSizes(gpuType string) []string {
	counts := gpus[gpuType].partitions
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b))
	})
}

// TakesGPUs reports whether GPUs can be attached to the machine. Only N1 takes
// them; other machines come with theirs, or have none.
func (m Machine) TakesGPUs() bool { return m.Family() == "n1" }

// WithGPUs is the machine with GPUs attached to it. It does not check whether
// the machine takes them: see [Machine.AttachableCounts].
func (m Machine) WithGPUs(gpuType string, count int) Machine {
	m.GPUType, m.GPUs = gpuType, count
	return m
}

// AttachableGPUTypes are the types of GPU that N1 machines take, sorted.
func AttachableGPUTypes() []string {
	var types []string
	for name, g := range gpus {
		if g.attachable != nil {
			types = append(types, name)
		}
	}
	slices.Sort(types)
	return types
}

// AttachableCounts are the numbers of GPUs of a type that can be attached to
// the machine, ascending. There are none where the machine takes no GPUs or has
// more vCPUs than GPUs of this type allow.
func (m Machine) AttachableCounts(gpuType string) []int {
	if !m.TakesGPUs() {
		return nil
	}
	var counts []int
	for _, a := range gpus[gpuType].attachable {
		if m.CPUs <= a.maxCPUs {
			counts = append(counts, a.count)
		}
	}
	return counts
}
