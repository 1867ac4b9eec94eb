package gcp

import "slices"

// GPUResource is the name of GPUs among a node's resources.
const GPUResource = "nvidia.com/gpu"

// TakesGPUs reports whether GPUs can be attached to the machine. Only N1 takes
// them; other machines come with theirs, or have none.
func (m Machine) TakesGPUs() bool { return m.Family() == "n1" }

// WithGPUs returns the machine with GPUs attached to it. It does not check whether
// the machine takes them: see [Machine.AttachableCounts].
func (m Machine) WithGPUs(gpuType string, count int) Machine {
	m.GPUType, m.GPUs = gpuType, count
	return m
}

// AttachableCounts returns the numbers of GPUs of a type that can be attached to the machine, in ascending order, or
// none if the machine takes no GPUs or has more vCPUs than GPUs of this type allow.
func (m Machine) AttachableCounts(gpuType string) []int {
	if !m.TakesGPUs() {
		return nil
	}
	var counts []int
	for count, most := range tables().GPUs[gpuType].Attachable {
		if m.CPUs <= most {
			counts = append(counts, count)
		}
	}
	slices.Sort(counts)
	return counts
}
