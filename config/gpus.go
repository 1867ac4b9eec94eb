package config

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/gcp"
)

// Places is the number of nvidia.com/gpu that a node offers.
func (g GPU) Places() int64 {
	return int64(g.Count) * g.placesEach()
}

// placesEach is how many nvidia.com/gpu one GPU makes. A partition or a sharing
// that is refused counts as none.
func (g GPU) placesEach() int64 {
	places := max(1, int64(gcp.Partitions(g.Type, g.Partition)))
	if g.Sharing != nil {
		places *= int64(min(max(1, g.Sharing.MaxClients), mostClients))
	}
	return places
}

// gpu checks that a pool has the GPUs that its machine type has or takes.
func (v *validator) gpu(path *field.Path, p NodePool, m gcp.Machine) {
	if p.GPU != nil {
		v.partition(path.Child("partition"), *p.GPU)
		v.sharing(path.Child("sharing"), p.GPU.Sharing)
	}
	switch {
	case p.GPU == nil && m.GPUs > 0:
		v.required(path, "%s comes with GPUs; write {type: %s, count: %d}", m.Type, m.GPUType, m.GPUs)
	case p.GPU == nil:
	case m.GPUs > 0:
		if p.GPU.Type != m.GPUType {
			v.invalid(path.Child("type"), p.GPU.Type, "%s comes with %s; write that, or choose another machine type", m.Type, m.GPUType)
		}
		if p.GPU.Count != m.GPUs {
			v.invalid(path.Child("count"), p.GPU.Count, "%s comes with %d GPUs; write %d, or choose another machine type", m.Type, m.GPUs, m.GPUs)
		}
	case m.TakesGPUs():
		v.attachedGPU(path, *p.GPU, m)
	default:
		v.forbidden(path, "%s takes no GPUs; remove gpu, or choose a machine type of a2, a3, a4, g2, g4 or n1", m.Type)
	}
}

func (v *validator) attachedGPU(path *field.Path, gpu GPU, m gcp.Machine) {
	if !oneOf(v, path.Child("type"), gpu.Type, gcp.AttachableGPUTypes()...) {
		return
	}
	counts := m.AttachableCounts(gpu.Type)
	if slices.Contains(counts, gpu.Count) {
		return
	}
	if len(counts) == 0 {
		v.invalid(path.Child("type"), gpu.Type, "cannot be attached to as many vCPUs as those of %s; choose a smaller machine type", m.Type)
		return
	}
	v.invalid(path.Child("count"), gpu.Count, "%s takes %s of %s; write one of these, or choose another machine type", m.Type, or(numbers(counts)), gpu.Type)
}

func numbers(ns []int) []string {
	s := make([]string, len(ns))
	for i, n := range ns {
		s[i] = fmt.Sprint(n)
	}
	return s
}

// partition checks that a GPU can be divided as it is said.
func (v *validator) partition(path *field.Path, gpu GPU) {
	sizes := gcp.PartitionSizes(gpu.Type)
	switch {
	case gpu.Partition == "" || slices.Contains(sizes, gpu.Partition):
	case len(sizes) == 0:
		v.invalid(path, gpu.Partition, "is for GPUs that can be divided, and %s cannot; remove it, or choose an A100, H100 or H200", gpu.Type)
	default:
		v.invalid(path, gpu.Partition, "is no size that %s can be divided into; write %s", gpu.Type, or(sizes))
	}
}

// mostClients is how many containers can share a GPU at most (GKE, "About GPU
// sharing strategies in GKE").
const mostClients = 48

func (v *validator) sharing(path *field.Path, s *GPUSharing) {
	if s == nil {
		return
	}
	oneOf(v, path.Child("strategy"), s.Strategy, "TIME_SHARING", "MPS")
	if s.MaxClients < 2 || s.MaxClients > mostClients {
		v.invalid(path.Child("maxClients"), s.MaxClients, "must be from 2 to %d; remove sharing to give each GPU to one container", mostClients)
	}
}
