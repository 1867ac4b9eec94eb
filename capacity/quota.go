package capacity

import (
	"cmp"
	"slices"
	"strings"
)

// Quota is an amount of a Compute Engine quota that a stack takes when all of its
// pools are at their maximum.
type Quota struct {
	// Name is the quota's, like N2_CPUS, with its dimension where it has one, like
	// CPUS_PER_VM_FAMILY (vm_family C4).
	Name string
	// Region is a region, or global.
	Region string
	Amount int64
}

// Usage is what a node pool takes of quotas.
type Usage struct {
	Machine Machine
	Spot    bool
	Nodes   int
	// BootDisk is that of a node.
	BootDisk Disk
	// LocalSSDs is the number of a node's local SSDs.
	LocalSSDs int
}

// Disk is a disk of Compute Engine.
type Disk struct {
	// Type is like pd-balanced.
	Type string
	// GB is the size in GB.
	GB int
}

// localSSDGB is the size of a local SSD.
const localSSDGB = 375

// Quotas add up what node pools and disks beside their own take in a region, sorted
// by name. Names are those
// of the Compute Engine API (Compute Engine, "Allocation quotas"). Of addresses
// that are in use, Cloud NAT takes as many as it needs and at least one.
func Quotas(region string, nat bool, pools []Usage, disks []Disk) []Quota {
	const global = "global"
	amounts := map[Quota]int64{}
	take := func(region, name string, amount int) {
		if amount > 0 {
			amounts[Quota{Name: name, Region: region}] += int64(amount)
		}
	}
	for _, pool := range pools {
		cpus, gpus := pool.Nodes*pool.Machine.CPUs, pool.Nodes*pool.Machine.GPUs
		take(region, "INSTANCES", pool.Nodes)
		take(region, cpuQuota(pool.Machine, pool.Spot), cpus)
		take(global, "CPUS_ALL_REGIONS", cpus)
		take(region, gpuQuota(pool.Machine.GPUType, pool.Spot), gpus)
		take(global, "GPUS_ALL_REGIONS", gpus)
		take(region, diskQuota(pool.BootDisk.Type), pool.Nodes*pool.BootDisk.GB)
		take(region, localSSDQuota(pool.Spot), pool.Nodes*pool.LocalSSDs*localSSDGB)
	}
	for _, disk := range disks {
		take(region, diskQuota(disk.Type), disk.GB)
	}
	if nat {
		take(region, "IN_USE_ADDRESSES", 1)
	}
	var quotas []Quota
	for quota, amount := range amounts {
		quota.Amount = amount
		quotas = append(quotas, quota)
	}
	slices.SortFunc(quotas, func(a, b Quota) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name))
	})
	return quotas
}

// ownCPUQuota are the machine families whose vCPUs have a quota of their own.
// Others of the same age share CPUS, and newer ones have CPUS_PER_VM_FAMILY.
var (
	ownCPUQuota    = []string{"a2", "c2", "c2d", "c3", "m1", "m2", "m3", "n2", "n2d"}
	sharedCPUQuota = []string{"a3", "e2", "g2", "n1"}
)

func cpuQuota(m Machine, spot bool) string {
	family := strings.ToUpper(m.Family())
	switch {
	case spot:
		return "PREEMPTIBLE_CPUS"
	case slices.Contains(ownCPUQuota, m.Family()):
		return family + "_CPUS"
	case slices.Contains(sharedCPUQuota, m.Family()):
		return "CPUS"
	default:
		return "CPUS_PER_VM_FAMILY (vm_family " + family + ")"
	}
}

// gpuFamilies name accelerators as quotas do: those of GPUs that have a quota of
// their own, and those that share GPUS_PER_GPU_FAMILY.
var gpuFamilies = map[string]struct {
	name  string
	ofOwn bool
}{
	"nvidia-a100-80gb":      {"NVIDIA_A100_80GB", true},
	"nvidia-h100-80gb":      {"NVIDIA_H100", false},
	"nvidia-h100-mega-80gb": {"NVIDIA_H100_MEGA", false},
	"nvidia-h200-141gb":     {"NVIDIA_H200", false},
	"nvidia-l4":             {"NVIDIA_L4", true},
	"nvidia-tesla-a100":     {"NVIDIA_A100", true},
	"nvidia-tesla-p100":     {"NVIDIA_P100", true},
	"nvidia-tesla-p4":       {"NVIDIA_P4", true},
	"nvidia-tesla-t4":       {"NVIDIA_T4", true},
	"nvidia-tesla-v100":     {"NVIDIA_V100", true},
}

func gpuQuota(gpuType string, spot bool) string {
	family, known := gpuFamilies[gpuType]
	if !known {
		family.name = strings.ToUpper(strings.ReplaceAll(gpuType, "-", "_"))
	}
	switch {
	case spot:
		return "PREEMPTIBLE_" + family.name + "_GPUS"
	case family.ofOwn:
		return family.name + "_GPUS"
	default:
		return "GPUS_PER_GPU_FAMILY (gpu_family " + family.name + ")"
	}
}

func diskQuota(diskType string) string {
	switch diskType {
	case "pd-standard":
		return "DISKS_TOTAL_GB"
	case "hyperdisk-balanced":
		return "HDB_TOTAL_GB"
	default:
		return "SSD_TOTAL_GB"
	}
}

func localSSDQuota(spot bool) string {
	if spot {
		return "PREEMPTIBLE_LOCAL_SSD_GB"
	}
	return "LOCAL_SSD_TOTAL_GB"
}
