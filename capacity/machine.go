package capacity

import (
	"maps"
	"slices"
	"strings"
)

// Machine is a machine type of Compute Engine, with the GPUs that it comes with
// or that are attached to it.
type Machine struct {
	// Type is the name at Compute Engine, like a2-highgpu-8g.
	Type string
	// CPUs is the number of vCPUs.
	CPUs int
	// MemoryBytes is the physical memory in bytes.
	MemoryBytes int64
	// GPUs is the number of GPUs. Those of A2, A3 and G2 belong to the type;
	// those of N1 are attached with [Machine.WithGPUs].
	GPUs int
	// GPUType is the accelerator's name at Compute Engine, like
	// nvidia-tesla-a100. It is empty without GPUs.
	GPUType string
}

// Lookup finds a machine type in the catalogue. Shared-core and custom types
// are not in it.
func Lookup(machineType string) (Machine, bool) {
	m, ok := catalogue[machineType]
	return m, ok
}

// Types are the names of all machine types of the catalogue, sorted.
func Types() []string {
	return slices.Sorted(maps.Keys(catalogue))
}

// Family is the machine series, like a2 or n1.
func (m Machine) Family() string {
	family, _, _ := strings.Cut(m.Type, "-")
	return family
}

// TakesGPUs reports whether GPUs can be attached to the machine. Only N1 takes
// them; A2, A3 and G2 come with theirs.
func (m Machine) TakesGPUs() bool {
	return m.Family() == "n1"
}

// WithGPUs is the machine with GPUs attached to it. It does not check whether
// the machine takes them: see [Machine.AttachableCounts].
func (m Machine) WithGPUs(gpuType string, count int) Machine {
	m.GPUType, m.GPUs = gpuType, count
	return m
}

// AttachableGPUTypes are the types of GPU that N1 machines take, sorted.
func AttachableGPUTypes() []string {
	return slices.Sorted(maps.Keys(attachable))
}

// AttachableCounts are the numbers of GPUs of a type that can be attached to
// the machine, ascending. There are none where the machine takes no GPUs or has
// more vCPUs than GPUs of this type allow.
func (m Machine) AttachableCounts(gpuType string) []int {
	if !m.TakesGPUs() {
		return nil
	}
	var counts []int
	for _, a := range attachable[gpuType] {
		if m.CPUs <= a.maxCPUs {
			counts = append(counts, a.count)
		}
	}
	return counts
}

// attachable says for each GPU type how many can be attached to an N1 machine
// of how many vCPUs (Compute Engine, "GPU machine types", N1).
var attachable = map[string][]struct{ count, maxCPUs int }{
	"nvidia-tesla-p100": {{1, 16}, {2, 32}, {4, 96}},
	"nvidia-tesla-p4":   {{1, 24}, {2, 48}, {4, 96}},
	"nvidia-tesla-t4":   {{1, 48}, {2, 48}, {4, 96}},
	"nvidia-tesla-v100": {{1, 12}, {2, 24}, {4, 48}, {8, 96}},
}

// BootDisks are the types of boot disk that the machine takes, the best general
// choice first (Compute Engine, "Choose a disk type", machine series support).
func (m Machine) BootDisks() []string {
	persistent := []string{"pd-balanced", "pd-ssd", "pd-standard"}
	switch {
	case m.Family() == "c4", m.Family() == "n4", m.Type == "a3-ultragpu-8g":
		return []string{"hyperdisk-balanced"}
	case slices.Contains([]string{"a3", "c3", "c3d", "m1", "m2", "m3"}, m.Family()):
		return append(persistent, "hyperdisk-balanced")
	default:
		return persistent
	}
}
