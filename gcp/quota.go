package gcp

import "strings"

// quota is the quota that the vCPUs of a series count to (Compute Engine,
// "Allocation quotas").
type quota int

const (
	// familyQuota is CPUS_PER_VM_FAMILY, which newer series use.
	familyQuota quota = iota
	// ownQuota is one of the series' own, like N2_CPUS.
	ownQuota
	// sharedQuota is CPUS, which the oldest series share.
	sharedQuota
)

// CPUQuota returns the name of the quota for the machine's vCPUs, with its dimension if it has one.
// An unknown series counts as a new one.
func (m Machine) CPUQuota(spot bool) string {
	family := strings.ToUpper(m.Family())
	s, _ := m.Series()
	switch {
	case spot:
		return "PREEMPTIBLE_CPUS"
	case s.quota == ownQuota:
		return family + "_CPUS"
	case s.quota == sharedQuota:
		return "CPUS"
	default:
		return "CPUS_PER_VM_FAMILY (vm_family " + family + ")"
	}
}

// GPUQuota returns the name of the quota for GPUs of a type.
func GPUQuota(gpuType string, spot bool) string {
	g, known := gpus[gpuType]
	if !known {
		g.quota = strings.ToUpper(strings.ReplaceAll(gpuType, "-", "_"))
	}
	switch {
	case spot:
		return "PREEMPTIBLE_" + g.quota + "_GPUS"
	case g.ownQuota:
		return g.quota + "_GPUS"
	default:
		return "GPUS_PER_GPU_FAMILY (gpu_family " + g.quota + ")"
	}
}

// DiskQuota returns the name of the quota for disks of a type.
func DiskQuota(diskType string) string {
	switch diskType {
	case pdStandard:
		return "DISKS_TOTAL_GB"
	case hyperdiskBalanced:
		return "HDB_TOTAL_GB"
	default:
		return "SSD_TOTAL_GB"
	}
}

// LocalSSDQuota returns the name of the quota for local SSDs.
func LocalSSDQuota(spot bool) string {
	if spot {
		return "PREEMPTIBLE_LOCAL_SSD_GB"
	}
	return "LOCAL_SSD_TOTAL_GB"
}

// LocalSSDGB is the size of a local SSD.
const LocalSSDGB = 375
