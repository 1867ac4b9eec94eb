package poolspec

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/gcp"
)

// ofSeries checks the fields that depend on the series of a pool's machines.
func (c *checker) ofSeries(path *field.Path, pool Pool, m gcp.Machine) {
	c.disk(path.Child("disk"), pool, m)
	c.localSSDs(path.Child("localSsdCount"), pool.LocalSSDs, m)
	if pool.Spot && !m.HasSpot() {
		c.Invalid(path.Child("spot"), pool.Spot, "is not available for %s; remove it, or choose a machine type of another series", m.Type)
	}
	if pool.CompactPlacement && !m.TakesCompactPlacement() {
		c.Invalid(path.Child("compactPlacement"), pool.CompactPlacement, "is not supported by the series of %s; remove it, or choose a machine type of %s", m.Type, check.Or(gcp.CompactFamilies()))
	}
	c.gvnic(path, pool, m)
}

// gvnic checks that the machine type and the image support the network interface: GKE has
// gVNIC only on Container-Optimized OS (GKE, "Using Google Virtual NIC").
func (c *checker) gvnic(path *field.Path, pool Pool, m gcp.Machine) {
	at := path.Child("gvnic")
	switch cos := pool.ImageType == gcp.ImageCOS; {
	case m.NeedsGVNIC() && !cos:
		c.Invalid(path.Child("imageType"), pool.ImageType, "is not supported by %s, whose only network interface is gVNIC, which GKE offers only on %s; write that (for a GPU pool, with the NVIDIA driver installer %s or %s), or choose another machine type", m.Type, gcp.ImageCOS, InstallerManaged, InstallerCOS)
	case m.NeedsGVNIC() && !*pool.GVNIC:
		c.Invalid(at, false, "is not supported by %s, which has no other network interface; remove it", m.Type)
	case *pool.GVNIC && !m.TakesGVNIC():
		c.Invalid(at, true, "is not supported by GKE on %s; remove it", m.Type)
	case *pool.GVNIC && !cos:
		c.Invalid(at, true, "requires the image %s, but the pool has %s; remove it, or change the image", gcp.ImageCOS, pool.ImageType)
	}
}

// The sizes of GKE's node images: 12 GB since 1.32 (GoogleCloudPlatform/magic-modules#13788),
// and 15 GB with GPUs (#2505).
const leastDiskGB, leastGPUDiskGB = 12, 15

// muchDiskGB is the size of a boot disk above which the program warns.
const muchDiskGB = 10_000

// disk checks the boot disk against the limits of GKE (GKE API, NodeConfig) and Compute
// Engine ("Persistent Disk", 64 TB). For series that are not in the catalogue, any type of
// disk may be right.
func (c *checker) disk(path *field.Path, pool Pool, m gcp.Machine) {
	switch disks := m.BootDisks(); {
	case pool.Disk.Type == "":
		c.Required(path.Child("type"), "write one of %s: the series of %s is not in the catalogue, and might not support all of them", check.Or(gcp.DiskTypes), m.Type)
	case slices.Contains(gcp.DiskTypes, pool.Disk.Type) && len(disks) > 0 && !slices.Contains(disks, pool.Disk.Type):
		c.Invalid(path.Child("type"), pool.Disk.Type, "is not supported by %s; write %s", m.Type, check.Or(disks))
	}
	if pool.Disk.SizeGB > muchDiskGB {
		c.Warn(path.Child("sizeGb"), "%d GB is the size of the boot disk of each node, which holds images and logs; write it in storage if it is for data", pool.Disk.SizeGB)
	}
	least := leastDiskGB
	if pool.GPU != nil {
		least = leastGPUDiskGB
	}
	if pool.Disk.SizeGB < least || pool.Disk.SizeGB > 65536 {
		c.Invalid(path.Child("sizeGb"), pool.Disk.SizeGB, "must be from %d, the size of the node image, to 65536", least)
	}
}

func (c *checker) localSSDs(path *field.Path, disks int, m gcp.Machine) {
	counts, known := m.LocalSSDs()
	switch {
	case disks < 0:
		c.Invalid(path, disks, "must be at least 1; remove it if you need none")
	case disks == 0 && strings.HasSuffix(m.Type, "-lssd"):
		c.Required(path, "write the number of local SSDs that %s includes; without it, every update would replace the pool", m.Type)
	case disks == 0 || !known || slices.Contains(counts, disks):
	case len(counts) == 0:
		c.Invalid(path, disks, "is not supported by %s; remove it, or choose another machine type", m.Type)
	default:
		c.Invalid(path, disks, "%s supports %s; write one of these, or choose another machine type", m.Type, check.Or(check.Words(counts, strconv.Itoa)))
	}
}

// fastSocket checks the requirements of NCCL Fast Socket (GKE, "Improve workload efficiency
// using NCCL Fast Socket").
func (c *checker) fastSocket(path *field.Path, pool Pool) {
	switch {
	case !pool.FastSocket:
	case pool.GPU == nil:
		c.Invalid(path, pool.FastSocket, "is only for GPU pools; remove it")
	case pool.ImageType == gcp.ImageUbuntu:
		c.Invalid(path, pool.FastSocket, "requires the image %s, but the pool has %s; remove it, or choose an NVIDIA driver installer for %s", gcp.ImageCOS, gcp.ImageUbuntu, gcp.ImageCOS)
	case !*pool.GVNIC:
		c.Invalid(path, pool.FastSocket, "requires gvnic, which is false; remove one of them")
	}
}
