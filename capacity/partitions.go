package capacity

import (
	"cmp"
	"maps"
	"slices"
)

// partitions says of each type of GPU that can be divided (MIG) how many instances
// of a size one GPU makes (GoogleCloudPlatform/container-engine-accelerators,
// pkg/gpu/nvidia/mig).
var partitions = map[string]map[string]int{
	"nvidia-tesla-a100":     {"1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "7g.40gb": 1},
	"nvidia-a100-80gb":      {"1g.10gb": 7, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1},
	"nvidia-h100-80gb":      {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1},
	"nvidia-h100-mega-80gb": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1},
	"nvidia-h200-141gb":     {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
}

// Partitions is how many instances of a size one GPU of a type makes. It is 0 for
// a size that the type does not have.
func Partitions(gpuType, size string) int {
	return partitions[gpuType][size]
}

// PartitionSizes are the sizes of the instances that a type of GPU can be divided
// into, those that make the most first. A type that cannot be divided has none.
func PartitionSizes(gpuType string) []string {
	counts := partitions[gpuType]
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b))
	})
}
