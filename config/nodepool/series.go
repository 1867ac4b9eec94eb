package nodepool

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/gcp"
)

// ofSeries checks what depends on the series of a pool's machines.
func (c *checker) ofSeries(path *field.Path, pool Pool, m gcp.Machine) {
	c.disk(path.Child("disk"), pool, m)
	c.localSSDs(path.Child("localSsdCount"), pool.LocalSSDs, m)
	if pool.Spot && !m.HasSpot() {
		c.Invalid(path.Child("spot"), pool.Spot, "is not for %s, of which there are no spot machines; remove it, or choose a machine type of another series", m.Type)
	}
	if pool.CompactPlacement && !m.TakesCompactPlacement() {
		c.Invalid(path.Child("compactPlacement"), pool.CompactPlacement, "is not for %s, whose series cannot be placed so; remove it, or choose a machine type of a2, a3, a4, c2, c2d, c3, c3d, c4, c4d, g2, n2 or n2d", m.Type)
	}
	if !pool.GVNIC && m.NeedsGVNIC() {
		c.Invalid(path.Child("gvnic"), false, "is not for %s, which has no other network interface; remove it", m.Type)
	}
}

// disk checks the boot disk. Its bounds are those of GKE (GKE API, NodeConfig)
// and Compute Engine ("Persistent Disk", 64 TB). What a machine takes that is not
// in the catalogue, only the stack file knows.
func (c *checker) disk(path *field.Path, pool Pool, m gcp.Machine) {
	types := []string{"pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced"}
	_, known := gcp.Lookup(m.Type)
	if slices.Contains(types, pool.Disk.Type) && known && !slices.Contains(m.BootDisks(), pool.Disk.Type) {
		c.Invalid(path.Child("type"), pool.Disk.Type, "is not for %s; write %s", m.Type, check.Or(m.BootDisks()))
	}
	if pool.Disk.SizeGB < 10 || pool.Disk.SizeGB > 65536 {
		c.Invalid(path.Child("sizeGb"), pool.Disk.SizeGB, "must be from 10 to 65536")
	}
}

func (c *checker) localSSDs(path *field.Path, disks int, m gcp.Machine) {
	counts, known := m.LocalSSDs()
	switch {
	case disks < 0:
		c.Invalid(path, disks, "must be at least 1; remove it if none is needed")
	case disks == 0 || !known || slices.Contains(counts, disks):
	case len(counts) == 0:
		c.Invalid(path, disks, "is not for %s, which takes no local SSDs; remove it, or choose another machine type", m.Type)
	default:
		c.Invalid(path, disks, "%s takes %s; write one of these, or choose another machine type", m.Type, check.Or(numbers(counts)))
	}
}

// fastSocket checks what NCCL Fast Socket stands on (GKE, "Improve workload
// efficiency using NCCL Fast Socket").
func (c *checker) fastSocket(path *field.Path, pool Pool) {
	switch {
	case !pool.FastSocket:
	case pool.GPU == nil:
		c.Invalid(path, pool.FastSocket, "is for GPU pools only; remove it")
	case !pool.GVNIC:
		c.Invalid(path, pool.FastSocket, "needs gvnic, which is false; remove one of the two")
	case pool.ImageType == gcp.ImageUbuntu:
		c.Invalid(path, pool.FastSocket, "needs the image %s, the pool has %s; remove it, or choose an NVIDIA driver for %s", gcp.ImageCOS, gcp.ImageUbuntu, gcp.ImageCOS)
	}
}
