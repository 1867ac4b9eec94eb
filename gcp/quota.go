package gcp

import (
	"cmp"
	"strings"
)

// CPUQuota returns the name of the quota for the machine's vCPUs, with its dimension if it has one.
// An unknown series counts as a new one.
func (m Machine) CPUQuota(spot bool) string {
	family := strings.ToUpper(m.Family())
	switch {
	case spot:
		return "PREEMPTIBLE_CPUS"
	case m.series().Quota == "own":
		return family + "_CPUS"
	case m.series().Quota == "shared":
		return "CPUS"
	default:
		return "CPUS_PER_VM_FAMILY (vm_family " + family + ")"
	}
}

// GPUQuota returns the name of the quota for GPUs of a type.
func GPUQuota(gpuType string, spot bool) string {
	g, ok := tables().GPUs[gpuType]
	if !ok {
		g.Quota = strings.ToUpper(strings.ReplaceAll(gpuType, "-", "_"))
	}
	switch {
	case spot:
		return "PREEMPTIBLE_" + g.Quota + "_GPUS"
	case g.OwnQuota:
		return g.Quota + "_GPUS"
	default:
		return "GPUS_PER_GPU_FAMILY (gpu_family " + g.Quota + ")"
	}
}

// DiskQuota returns the name of the quota for disks of a type.
func DiskQuota(diskType string) string {
	others := map[string]string{pdStandard: "DISKS_TOTAL_GB", hyperdiskBalanced: "HDB_TOTAL_GB"}
	return cmp.Or(others[diskType], "SSD_TOTAL_GB")
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
