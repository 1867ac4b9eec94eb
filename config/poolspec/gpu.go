package poolspec

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/gcp"
)

// AllocatableGPUs returns the number of nvidia.com/gpu that a node offers.
func (g GPU) AllocatableGPUs() int64 {
	return int64(g.Count) * g.SharesEach()
}

// SharesEach returns the number of nvidia.com/gpu that one GPU counts as. It ignores an
// invalid partition or sharing.
func (g GPU) SharesEach() int64 {
	shares := max(1, int64(gcp.Partitions(g.Type, g.Partition)))
	if g.Sharing != nil {
		shares *= int64(min(max(1, g.Sharing.MaxClients), mostClients))
	}
	return shares
}

// checkGPU checks that the machine type of a pool includes or supports its GPUs.
func checkGPU(p *check.Problems, path *field.Path, pool Pool, m gcp.Machine) {
	if pool.GPU != nil {
		checkPartition(p, path.Child("partition"), *pool.GPU)
		checkSharing(p, path.Child("sharing"), pool.GPU.Sharing)
	}
	switch {
	case pool.GPU == nil:
	case m.GPUs > 0:
		if pool.GPU.Type != m.GPUType {
			p.Invalid(path.Child("type"), pool.GPU.Type, "%s includes %s; write that, or choose another machine type", m.Type, m.GPUType)
		}
		if pool.GPU.Count != m.GPUs {
			p.Invalid(path.Child("count"), pool.GPU.Count, "%s includes %d GPUs; write %d, or choose another machine type", m.Type, m.GPUs, m.GPUs)
		}
	case m.TakesGPUs():
		checkAttachedGPU(p, path, *pool.GPU, m)
	default:
		p.Forbidden(path, "%s does not support GPUs; remove gpu, or choose a machine type of %s", m.Type, check.Or(gcp.GPUFamilies()))
	}
}

func checkAttachedGPU(p *check.Problems, path *field.Path, gpu GPU, m gcp.Machine) {
	if !check.OneOf(p, path.Child("type"), gpu.Type, gcp.AttachableGPUTypes()...) {
		return
	}
	counts := m.AttachableCounts(gpu.Type)
	if slices.Contains(counts, gpu.Count) {
		return
	}
	if len(counts) == 0 {
		p.Invalid(path.Child("type"), gpu.Type, "cannot be attached to a machine with as many vCPUs as %s; choose a smaller machine type", m.Type)
		return
	}
	p.Invalid(path.Child("count"), gpu.Count, "%s supports %s of %s; write one of these, or choose another machine type", m.Type, check.Or(check.Words(counts, strconv.Itoa)), gpu.Type)
}

// checkPartition checks that a GPU can be partitioned by a size.
func checkPartition(p *check.Problems, path *field.Path, gpu GPU) {
	sizes := gcp.PartitionSizes(gpu.Type)
	switch {
	case gpu.Partition == "" || slices.Contains(sizes, gpu.Partition):
	case len(sizes) == 0:
		p.Invalid(path, gpu.Partition, "requires a GPU that can be partitioned, and %s cannot; remove it, or choose an A100, H100, or H200", gpu.Type)
	default:
		p.Invalid(path, gpu.Partition, "is not a partition size of %s; write %s", gpu.Type, check.Or(sizes))
	}
}

// mostClients is the number of containers that can share a GPU (GKE, "About GPU sharing
// strategies in GKE").
const mostClients = 48

func checkSharing(p *check.Problems, path *field.Path, s *Sharing) {
	if s != nil {
		check.Range(p, path.Child("maxClients"), s.MaxClients, 2, mostClients, "; remove sharing to give each GPU to one container")
	}
}

// checkStrategy refuses MPS, which requires hostIPC, in a cluster that the stack creates
// (GKE, "Share GPUs with multiple workloads using NVIDIA MPS").
func checkStrategy(p *check.Problems, path *field.Path, gpu *GPU) {
	if gpu != nil && gpu.Sharing != nil && gpu.Sharing.Strategy == "MPS" {
		p.Invalid(path, gpu.Sharing.Strategy, "is only for an existing cluster, because pods need hostIPC for GKE's MPS, which the policies of the stack refuse; write TIME_SHARING, or divide the GPUs with partition")
	}
}
