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
	// quota is the GPU's name in quotas, and ownQuota says that it does not share
	// GPUS_PER_GPU_FAMILY.
	quota    string
	ownQuota bool
	// partitions say how many instances of a size (MIG) one GPU makes
	// (GoogleCloudPlatform/container-engine-accelerators, pkg/gpu/nvidia/mig).
	partitions map[string]int
	// attachable says how many can be attached to an N1 machine of how many vCPUs
	// (Compute Engine, "GPU machine types", N1).
	attachable []attachment
	// zones have the GPU by their region (Compute Engine, "GPU regions and zones", by the same
	// source as the table of regions). A type that the source lacks has none.
	zones map[string][]string
}

type attachment struct{ count, maxCPUs int }

// gpus are the types of GPU by their name at Compute Engine.
var gpus = map[string]gpu{
	"nvidia-a100-80gb": {quota: "NVIDIA_A100_80GB", ownQuota: true,
		partitions: map[string]int{"1g.10gb": 7, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1},
		zones:      withZones(`asia-southeast1-c europe-west4-a us-central1-ac us-east4-c us-east5-ab`)},
	"nvidia-b200": {quota: "NVIDIA_B200",
		zones: withZones(`asia-northeast1-b asia-southeast1-b europe-north1-b europe-west4-b us-central1-b
			us-east1-b us-east4-b us-south1-b us-west2-c us-west3-bc`)},
	"nvidia-h100-80gb": {quota: "NVIDIA_H100",
		partitions: map[string]int{"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1},
		zones: withZones(`asia-east1-c asia-northeast1-b asia-northeast3-ac asia-south1-c asia-south2-b
			asia-southeast1-bc australia-southeast1-c europe-north1-c europe-west1-bc europe-west2-b
			europe-west3-ac europe-west4-bc europe-west8-c europe-west9-c northamerica-northeast2-c
			us-central1-abc us-east4-abc us-east5-a us-west1-ab us-west4-a`)},
	"nvidia-h100-mega-80gb": {quota: "NVIDIA_H100_MEGA",
		partitions: map[string]int{"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1},
		zones: withZones(`asia-east1-c asia-northeast1-b asia-southeast1-bc australia-southeast1-c europe-north1-c
			europe-west1-bc europe-west3-ac europe-west4-bc northamerica-northeast2-c
			us-central1-abc us-east4-abc us-east5-a us-west1-ab us-west4-a`)},
	"nvidia-h200-141gb": {quota: "NVIDIA_H200",
		partitions: map[string]int{"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
		zones: withZones(`asia-south1-b asia-south2-c europe-west1-b europe-west4-a us-central1-b us-east4-b
			us-east5-a us-south1-b us-west1-c`)},
	"nvidia-l4": {quota: "NVIDIA_L4", ownQuota: true,
		zones: withZones(`asia-east1-abc asia-northeast1-abc asia-northeast3-ab asia-south1-abc
			asia-southeast1-abc europe-west1-bc europe-west2-ab europe-west3-ab europe-west4-abc
			europe-west6-bc me-central2-ac northamerica-northeast1-bc northamerica-northeast2-ab
			us-central1-abc us-east1-bcd us-east4-ac us-west1-abc us-west4-ac`)},
	"nvidia-rtx-pro-6000": {quota: "NVIDIA_RTX_PRO_6000"},
	"nvidia-tesla-a100": {quota: "NVIDIA_A100", ownQuota: true,
		partitions: map[string]int{"1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "7g.40gb": 1},
		zones: withZones(`asia-northeast1-ac asia-northeast3-ab asia-southeast1-abc europe-west4-ab me-west1-ac
			us-central1-abcf us-east1-b us-west1-b us-west3-b us-west4-b`)},
	"nvidia-tesla-p100": {quota: "NVIDIA_P100", ownQuota: true, attachable: []attachment{{1, 16}, {2, 32}, {4, 96}},
		zones: withZones(`asia-east1-ac australia-southeast1-b europe-west1-bd europe-west4-a us-central1-cf
			us-east1-bc us-west1-ab`)},
	"nvidia-tesla-p4": {quota: "NVIDIA_P4", ownQuota: true, attachable: []attachment{{1, 24}, {2, 48}, {4, 96}},
		zones: withZones(`asia-southeast1-abc australia-southeast1-ab europe-west4-bc northamerica-northeast1-abc
			us-central1-ac us-east4-abc us-west2-bc`)},
	"nvidia-tesla-t4": {quota: "NVIDIA_T4", ownQuota: true, attachable: []attachment{{1, 48}, {2, 48}, {4, 96}},
		zones: withZones(`asia-east1-ac asia-east2-ac asia-northeast1-ac asia-northeast3-bc asia-south1-ab
			asia-southeast1-abc asia-southeast2-ab australia-southeast1-ac europe-central2-bc
			europe-west1-bcd europe-west2-ab europe-west3-b europe-west4-abc me-west1-bc
			northamerica-northeast1-c southamerica-east1-abc us-central1-abcf us-east1-bcd
			us-east4-abc us-west1-ab us-west2-bc us-west3-b us-west4-ab`)},
	"nvidia-tesla-v100": {quota: "NVIDIA_V100", ownQuota: true, attachable: []attachment{{1, 12}, {2, 24}, {4, 48}, {8, 96}},
		zones: withZones(`asia-east1-c europe-west4-abc us-central1-abcf us-east1-bc us-west1-ab`)},
}

// Partitions returns how many instances of a size one GPU of a type provides, or 0 if the type does
// not have the size.
func Partitions(gpuType, size string) int {
	return gpus[gpuType].partitions[size]
}

// PartitionSizes returns the sizes of the instances into which a type of GPU can be divided, the
// smallest first, or none.
func PartitionSizes(gpuType string) []string {
	counts := gpus[gpuType].partitions
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b))
	})
}

// GPUZones returns the known zones of a region with a type of GPU, and reports whether the zones of
// the type are known at all.
func GPUZones(gpuType, region string) (zones []string, known bool) {
	all := gpus[gpuType].zones
	return all[region], all != nil
}

// TakesGPUs reports whether GPUs can be attached to the machine. Only N1 takes
// them; other machines come with theirs, or have none.
func (m Machine) TakesGPUs() bool { return m.Family() == "n1" }

// WithGPUs returns the machine with GPUs attached to it. It does not check whether
// the machine takes them: see [Machine.AttachableCounts].
func (m Machine) WithGPUs(gpuType string, count int) Machine {
	m.GPUType, m.GPUs = gpuType, count
	return m
}

// AttachableGPUTypes returns the types of GPU that N1 machines take, sorted.
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

// AttachableCounts returns the numbers of GPUs of a type that can be attached to the machine, in
// ascending order, or none if the machine takes no GPUs or has more vCPUs than GPUs of this type
// allow.
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
