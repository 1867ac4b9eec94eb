package capacity

import (
	"math"
	"math/bits"

	"persia/gcp"
)

// Allocatable returns the resources that GKE leaves to pods on a node: the machine, less the memory
// of its kernel, the reservation for the kubelet and other daemons, and the eviction threshold.
// GKE's own DaemonSets are pods, and take about 0.3 to 0.5 vCPU and 0.5 to 1 GiB of it.
//
// The published formula (GKE, "Plan GKE Standard node sizes") leaves the kernel out and promises up to 10 GiB too much
// on a machine of 624 GiB. This is the formula with which GKE's autoscaler predicts nodes (kubernetes/autoscaler,
// cluster-autoscaler/cloudprovider/gce, reserved.go and gce_reserved.go). It predicts the CPUs and reservations of the
// nodes in testdata/nodes.json exactly. Their kernels keep between 20 MiB more and 230 MiB less than it predicts.
func Allocatable(m gcp.Machine) Resources {
	return Resources{
		MilliCPU: int64(m.CPUs)*1000 - reservedMilliCPU(m.CPUs),
		MemoryBytes: m.MemoryBytes - kernelMemory(m.MemoryBytes) -
			reservedMemory(m.MemoryBytes) - evictionThreshold,
		GPUs: int64(m.GPUs),
	}
}

// evictionThreshold is the free memory, in bytes, below which the kubelet evicts pods.
const evictionThreshold = 100 * MiB

// bracket reserves a share of the capacity from a threshold to the next one.
type bracket struct{ from, share float64 }

func reservedMilliCPU(cpus int) int64 {
	return int64(reserved(float64(cpus)*1000, []bracket{
		{0, 0.06}, {1000, 0.01}, {2000, 0.005}, {4000, 0.0025},
	}))
}

// reservedMemory returns the memory that GKE reserves: a share of the physical memory, not of what
// the kernel leaves. The thresholds are published in GB; GKE counts a GB as 1000 MiB here.
func reservedMemory(physical int64) int64 {
	return MiB * int64(reserved(float64(physical/MiB), []bracket{
		{0, 0.25}, {4000, 0.2}, {8000, 0.1}, {16000, 0.06}, {128000, 0.02},
	}))
}

// reserved adds up the shares of all brackets that the capacity reaches into.
func reserved(capacity float64, brackets []bracket) float64 {
	sum := 0.0
	for i, b := range brackets {
		to := capacity
		if i+1 < len(brackets) {
			to = min(to, brackets[i+1].from)
		}
		sum += max(0, to-b.from) * b.share
	}
	return sum
}

// kernelMemory returns the part of the physical memory that the kernel keeps: page tables, buffers
// for devices that address 32 bits only, and a remainder that the autoscaler's authors measured.
// Ubuntu keeps 4 MiB more than Container-Optimized OS; the result includes them for both.
func kernelMemory(physical int64) int64 {
	kept := physical/64 + 16*MiB + 4*MiB
	if physical > 3*GiB {
		kept += 64 * MiB
	}
	if physical <= 8*GiB {
		kept += 8 * MiB
	}
	return kept + int64(math.Min(0.00175*float64(physical), 248*MiB))
}

// EphemeralStorage returns the storage of a node for pods, and the part that GKE leaves to them, in bytes: on its boot
// disk next to the node's image, or on its local SSDs. A tenth is the kubelet's eviction threshold, and the system
// takes a share (GKE, "Plan GKE Standard node sizes", ephemeral storage): half of a boot disk, or 6 GiB and 35% of it,
// or 100 GiB, whichever is least; of local SSDs 50 GiB of one, 75 GiB of two and 100 GiB of more.
func EphemeralStorage(diskGB, localSSDs int) (total, allocatable int64) {
	if localSSDs > 0 {
		total = int64(localSSDs) * gcp.LocalSSDGB * GiB
		return total, total - total/10 - min(int64(25*(localSSDs+1)), 100)*GiB
	}
	size := int64(diskGB) * GiB
	// The file system for pods on Container-Optimized OS.
	total = size * 94 / 100
	system := min(size/2, 6*GiB+size*35/100, 100*GiB)
	return total, total - total/10 - system
}

// ReservedAddresses is how many of a subnetwork's primary range Google keeps (VPC, "Subnets", unusable addresses).
const ReservedAddresses = 4

// PodAddresses returns how many addresses of the pod range GKE reserves for a node that runs up to a number of pods:
// the least power of two that is at least twice the number (GKE, "Configure maximum Pods per node").
func PodAddresses(maxPods int) int { return 1 << bits.Len(uint(max(2*maxPods, 1)-1)) }

// Range is a range of addresses, and how many of them are needed when all pools are at their maximum.
type Range struct {
	Name string
	// CIDR is the range in CIDR notation.
	CIDR         string
	Needed, Size int
}
