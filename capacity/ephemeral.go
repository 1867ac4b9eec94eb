package capacity

import "persia/gcp"

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
