package capacity

import "math/bits"

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
