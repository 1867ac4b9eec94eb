package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/gcp"
)

// ofSeries checks what depends on the series of a pool's machines.
func (v *validator) ofSeries(path *field.Path, p NodePool, m gcp.Machine) {
	v.disk(path.Child("disk"), p, m)
	v.localSSDs(path.Child("localSsds"), p.LocalSSDs, m)
	if p.Spot && !m.HasSpot() {
		v.invalid(path.Child("spot"), p.Spot, "is not for %s, of which there are no spot machines; remove it, or choose a machine type of another series", m.Type)
	}
	if p.CompactPlacement && !m.TakesCompactPlacement() {
		v.invalid(path.Child("compactPlacement"), p.CompactPlacement, "is not for %s, whose series cannot be placed so; remove it, or choose a machine type of a2, a3, a4, c2, c2d, c3, c3d, c4, c4d, g2, n2 or n2d", m.Type)
	}
	if !*p.GVNIC && m.NeedsGVNIC() {
		v.invalid(path.Child("gvnic"), false, "is not for %s, which has no other network interface; remove it", m.Type)
	}
}

// disk checks the boot disk. Its bounds are those of GKE (GKE API, NodeConfig)
// and Compute Engine ("Persistent Disk", 64 TB). What a machine takes that is not
// in the catalogue, only the stack file knows.
func (v *validator) disk(path *field.Path, p NodePool, m gcp.Machine) {
	types := []string{"pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced"}
	_, known := gcp.Lookup(m.Type)
	if oneOf(v, path.Child("type"), p.Disk.Type, types...) && known && !slices.Contains(m.BootDisks(), p.Disk.Type) {
		v.invalid(path.Child("type"), p.Disk.Type, "is not for %s; write %s", m.Type, or(m.BootDisks()))
	}
	if p.Disk.SizeGB < 10 || p.Disk.SizeGB > 65536 {
		v.invalid(path.Child("sizeGb"), p.Disk.SizeGB, "must be from 10 to 65536")
	}
}

func (v *validator) localSSDs(path *field.Path, disks int, m gcp.Machine) {
	counts, known := m.LocalSSDs()
	switch {
	case disks < 0:
		v.invalid(path, disks, "must be at least 1; remove it if none is needed")
	case disks == 0 || !known || slices.Contains(counts, disks):
	case len(counts) == 0:
		v.invalid(path, disks, "is not for %s, which takes no local SSDs; remove it, or choose another machine type", m.Type)
	default:
		v.invalid(path, disks, "%s takes %s; write one of these, or choose another machine type", m.Type, or(numbers(counts)))
	}
}

// fastSocket checks what NCCL Fast Socket stands on (GKE, "Improve workload
// efficiency using NCCL Fast Socket").
func (v *validator) fastSocket(path *field.Path, p NodePool) {
	switch {
	case !p.FastSocket:
	case p.GPU == nil:
		v.invalid(path, p.FastSocket, "is for GPU pools only; remove it")
	case !*p.GVNIC:
		v.invalid(path, p.FastSocket, "needs gvnic, which is false; remove one of the two")
	case p.ImageType == gcp.ImageUbuntu:
		v.invalid(path, p.FastSocket, "needs the image %s, the pool has %s; remove it, or choose an NVIDIA driver for %s", gcp.ImageCOS, gcp.ImageUbuntu, gcp.ImageCOS)
	}
}
