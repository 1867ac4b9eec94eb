// Package gcp is Google Cloud's vocabulary: the labels, taints, drivers, roles and
// enumerations of GKE, and the machine series of Compute Engine with what each of
// them takes. Every such name has its one home here, with the source of the fact.
//
// It is plain Go and asks no cloud.
package gcp

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Machine is a machine type of Compute Engine, with the GPUs that it comes with or that are attached to it.
type Machine struct {
	// Type is the name at Compute Engine, like a2-highgpu-8g.
	Type string
	CPUs int
	// MemoryBytes is the physical memory in bytes.
	MemoryBytes int64
	// GPUs is the number of GPUs. Types of A2, A3, A4, G2 and G4 include them; [Machine.WithGPUs] attaches GPUs to N1.
	GPUs int
	// GPUType is the accelerator's name at Compute Engine, like nvidia-tesla-a100. It is empty without GPUs.
	GPUType string
}

// Lookup finds a predefined or custom machine type. Shared-core and bare metal types are unknown.
func Lookup(machineType string) (Machine, bool) {
	if m, ok := tables().machines[machineType]; ok {
		return m, true
	}
	return custom(machineType)
}

// MachineTypes returns the names of all machine types of the catalogue, sorted.
func MachineTypes() []string { return slices.Sorted(maps.Keys(tables().machines)) }

// series returns the machine's series, which is empty if it is unknown: a stack file may describe such a machine.
func (m Machine) series() (s series) {
	// The longest prefix holds: a3-ultragpu before a3.
	for _, candidate := range tables().Series {
		if strings.HasPrefix(m.name(), candidate.Prefix+"-") && len(candidate.Prefix) > len(s.Prefix) {
			s = candidate
		}
	}
	return s
}

// Family returns the name of the series in quotas, like a2 or n1.
func (m Machine) Family() string {
	family, _, _ := strings.Cut(m.name(), "-")
	return family
}

// name returns the type with its series: custom-4-8192 is of N1.
func (m Machine) name() string {
	if strings.HasPrefix(m.Type, "custom-") {
		return "n1-" + m.Type
	}
	return m.Type
}

// MemoryOptimized reports whether the machine is of a memory-optimized series. These
// machines are rare, and one takes hundreds of vCPUs of a quota.
func (m Machine) MemoryOptimized() bool {
	return slices.Contains([]string{"m1", "m2", "m3", "m4"}, m.Family())
}

// Arm reports whether the machine has an Arm processor. GKE keeps pods off such nodes with
// the taint kubernetes.io/arch=arm64 (GKE, "Prepare an Arm workload for deployment").
func (m Machine) Arm() bool { return slices.Contains([]string{"c4a", "n4a", "t2a"}, m.Family()) }

// BootDisks returns the types of boot disk that the machine takes, the best general choice first,
// or none for an unknown series.
func (m Machine) BootDisks() []string { return m.series().Disks }

// HasSpot reports whether there are spot machines of the series.
func (m Machine) HasSpot() bool { return !m.series().NoSpot }

// TakesCompactPlacement reports whether machines of the series can be placed close
// to each other. A series that is not known is taken at the stack file's word.
func (m Machine) TakesCompactPlacement() bool {
	s := m.series()
	return s.Compact || s.Prefix == ""
}

// NeedsGVNIC reports whether the series has no other network interface.
func (m Machine) NeedsGVNIC() bool { return m.series().GVNIC == "only" }

// TakesGVNIC reports whether the series has Google's network interface at all.
func (m Machine) TakesGVNIC() bool { return m.series().GVNIC != "none" }

// LocalSSDs returns the numbers of local SSDs, besides none, that a machine of the catalogue can
// have. known is false for a type that is not in the catalogue.
func (m Machine) LocalSSDs() (counts []int, known bool) {
	if _, known := Lookup(m.Type); !known {
		return nil, false
	}
	numbers := m.series().LocalSSDs
	for _, most := range slices.Sorted(maps.Keys(numbers)) {
		if m.CPUs <= most {
			return numbers[most], true
		}
	}
	return nil, true
}

// BundledLocalSSDs returns the number of local SSDs that are always part of the machine.
func (m Machine) BundledLocalSSDs() int {
	if counts, _ := m.LocalSSDs(); m.series().Bundled && len(counts) == 1 {
		return counts[0]
	}
	return 0
}

// customForm matches custom machine types: their series, which is N1 without one, their vCPUs, and their memory in MiB
// (Compute Engine, "Create a VM with a custom machine type"). Of G2, the name does not say the number of GPUs.
var customForm = regexp.MustCompile(`^(?:(?:e2|n1|n2|n2d|n4)-)?custom-([1-9][0-9]{0,2})-([1-9][0-9]{2,7})(?:-ext)?$`)

// custom returns the machine of a custom type, whose name says its shape.
func custom(machineType string) (Machine, bool) {
	parts := customForm.FindStringSubmatch(machineType)
	if parts == nil {
		return Machine{}, false
	}
	cpus, _ := strconv.Atoi(parts[1])
	mebibytes, _ := strconv.ParseInt(parts[2], 10, 64)
	return Machine{Type: machineType, CPUs: cpus, MemoryBytes: mebibytes << 20}, mebibytes%256 == 0
}

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
