package capacity

import (
	"cmp"
	"slices"

	"persia/gcp"
)

// Quota is an amount of a Compute Engine quota that a stack takes when all of its
// pools are at their maximum and GKE upgrades them.
type Quota struct {
	// Name is the quota's, like N2_CPUS, with its dimension where it has one, like CPUS_PER_VM_FAMILY (vm_family C4).
	Name string
	// Region is a region, or global.
	Region string
	Amount int64
}

// Usage is the share of a node pool in the quotas of a region.
type Usage struct {
	Machine gcp.Machine
	Spot    bool
	// Nodes includes the nodes that an upgrade adds.
	Nodes int
	// BootDisk and LocalSSDs are of each node.
	BootDisk  Disk
	LocalSSDs int
}

// Disk is a disk of Compute Engine.
type Disk struct {
	Type string // like pd-balanced
	GB   int
}

// Quotas adds up what node pools and additional disks use in a region, sorted by name. Names are the quota names of the
// Compute Engine API (Compute Engine, "Allocation quotas"). Cloud NAT uses at least one address.
func Quotas(region string, pools []Usage, disks []Disk) []Quota {
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
		take(region, pool.Machine.CPUQuota(pool.Spot), cpus)
		take(global, "CPUS_ALL_REGIONS", cpus)
		take(region, gcp.GPUQuota(pool.Machine.GPUType, pool.Spot), gpus)
		take(global, "GPUS_ALL_REGIONS", gpus)
		take(region, gcp.DiskQuota(pool.BootDisk.Type), pool.Nodes*pool.BootDisk.GB)
		take(region, gcp.LocalSSDQuota(pool.Spot), pool.Nodes*pool.LocalSSDs*gcp.LocalSSDGB)
	}
	for _, disk := range disks {
		take(region, gcp.DiskQuota(disk.Type), disk.GB)
	}
	take(region, "IN_USE_ADDRESSES", 1)
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
