package volumespec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/check"
	"persia/gcp"
)

// PersistentDisk is a Compute Engine disk: an existing one, or with Create one that the
// stack creates. One node at a time can mount it.
type PersistentDisk struct {
	// Disk is the name of the disk.
	Disk string `json:"disk"`
	// Zones are the zone of the disk, or both zones of a regional disk. Default with create: the
	// first zone of the cluster.
	Zones []string `json:"zones,omitempty"`
	// Project is the Google Cloud project of the disk. Default: the project of the stack.
	// Required on an existing cluster.
	Project string `json:"project,omitempty"`
	// FSType is the file system.
	FSType string      `json:"fsType,omitempty" default:"ext4"`
	Create *CreateDisk `json:"create,omitempty"`
}

// CreateDisk creates the disk, with the size of the volume. `pulumi destroy` keeps it.
type CreateDisk struct {
	// Type is the type of the disk. A regional disk cannot be hyperdisk-balanced. You
	// cannot change it later.
	Type string `json:"type,omitempty" default:"pd-balanced" enum:"pd-standard,pd-balanced,pd-ssd,hyperdisk-balanced"`
	// KMSKey is the Cloud KMS key that encrypts the disk, in its region or global. You cannot change
	// it later. Default: Google's own.
	KMSKey string `json:"kmsKey,omitempty"`
	// DeleteWithStack is the name of the disk, to have `pulumi destroy` delete it with all
	// checkpoints. Default: it is kept.
	DeleteWithStack string `json:"deleteWithStack,omitempty"`
}

// Handle returns the ID by which the driver and Google Cloud know the disk.
func (d *PersistentDisk) Handle() string {
	where := "zones/" + strings.Join(d.Zones, "")
	if d.Regional() {
		where = "regions/" + d.Region()
	}
	return fmt.Sprintf("projects/%s/%s/disks/%s", d.Project, where, d.Disk)
}

// Regional reports whether the disk has replicas in two zones.
func (d *PersistentDisk) Regional() bool { return len(d.Zones) > 1 }

// Region returns the region of the disk's zones.
func (d *PersistentDisk) Region() string {
	if len(d.Zones) == 0 {
		return ""
	}
	return gcp.RegionOf(d.Zones[0])
}

func (d *PersistentDisk) Field() string  { return "persistentDisk" }
func (d *PersistentDisk) String() string { return d.Handle() }

func (d *PersistentDisk) Identity() string {
	if d.Disk == "" {
		return ""
	}
	return "csi " + gcp.DriverPersistentDisk + " " + d.Handle()
}

func (d *PersistentDisk) API() string { return "compute.googleapis.com" }

// Disks returns two disks for a regional one, which Compute Engine counts in both zones.
func (d *PersistentDisk) Disks(sizeGiB int64) []capacity.Disk {
	if d.Create == nil {
		return nil
	}
	return slices.Repeat([]capacity.Disk{{Type: d.Create.Type, GB: int(sizeGiB)}}, len(d.Zones))
}

func (d *PersistentDisk) Creation() *Creation {
	if d.Create == nil {
		return nil
	}
	return &Creation{KMSKey: d.Create.KMSKey, DeletesData: d.Create.DeleteWithStack != ""}
}

func (d *PersistentDisk) traits() traits {
	return traits{access: corev1.ReadWriteOnce, block: true, deletable: true, driver: gcp.DriverPersistentDisk}
}

func (d *PersistentDisk) resolve(context Context) {
	if d.Project == "" {
		d.Project = context.Project
	}
	if d.Create != nil && len(d.Zones) == 0 && len(context.Zones) > 0 {
		d.Zones = context.Zones[:1:1]
	}
}

func (d *PersistentDisk) check(p *check.Problems, path *field.Path, context Context) {
	p.Name(path.Child("disk"), d.Disk, validation.IsDNS1035Label)
	checkDriver(p, path, "persistentDisk", context)
	if d.Project == "" && context.Existing {
		p.Required(path.Child("project"), "write the Google Cloud project of the disk, because a stack on an existing cluster has none")
	}
	d.checkZones(p, path.Child("zones"), context)
	check.OneOf(p, path.Child("fsType"), d.FSType, gcp.FileSystems...)
	if create := path.Child("create"); d.Create != nil && checkCreatable(p, create, context) {
		d.checkCreate(p, create, context)
	}
}

func (d *PersistentDisk) checkZones(p *check.Problems, path *field.Path, context Context) {
	switch {
	case len(d.Zones) == 0:
		p.Required(path, "write the zone of the disk, as `gcloud compute disks list` shows it")
	case len(d.Zones) > 2:
		p.Invalid(path, d.Zones, "must be one zone, or the two of a regional disk")
	case context.Existing && !check.IsRegion(d.Region()):
		p.Invalid(path.Index(0), d.Zones[0], "must be a zone, like us-central1-a")
	case context.Existing:
		check.Zones(p, path, d.Region(), d.Zones)
	default:
		check.Zones(p, path, context.Region, d.Zones)
	}
}

func (d *PersistentDisk) checkCreate(p *check.Problems, path *field.Path, context Context) {
	if d.Project != context.Project {
		p.Invalid(path, d.Project, "the stack creates disks in its own project, %s; remove project", context.Project)
	}
	if d.Regional() && d.Create.Type == "hyperdisk-balanced" {
		p.Invalid(path.Child("type"), d.Create.Type, "must be pd-standard, pd-balanced or pd-ssd for a regional disk")
	}
	check.KMSKey(p, path.Child("kmsKey"), d.Create.KMSKey, "Compute Engine", context.Region, context.Region, "global")
	checkDeletion(p, path, d.Create.DeleteWithStack, d.Disk)
}

// mostDiskGiB is Compute Engine's limit for all of these types (Compute Engine,
// "About disks").
const mostDiskGiB = 65536

// leastDiskGiB is the minimum size of a disk by its type, except for a regional pd-standard.
var leastDiskGiB = map[string]int64{"pd-standard": 10, "pd-balanced": 10, "pd-ssd": 10, "hyperdisk-balanced": 4}

const leastRegionalStandardGiB = 200

func (d *PersistentDisk) checkSize(p *check.Problems, path *field.Path, volume *Volume) {
	if d.Create == nil {
		return
	}
	least, known := leastDiskGiB[d.Create.Type]
	if d.Regional() && d.Create.Type == "pd-standard" {
		least = leastRegionalStandardGiB
	}
	if size := volume.SizeGiB(); known && (size < least || size > mostDiskGiB || !volume.wholeGiB()) {
		p.Invalid(path, volume.Size, "must be from %dGi to %dGi, in whole Gi, for a disk of type %s", least, mostDiskGiB, d.Create.Type)
	}
}

// checkUsers checks that the nodes of the pools are in the zones of the disk, and that their
// machines support it.
func (d *PersistentDisk) checkUsers(p *check.Problems, path *field.Path, users Users) {
	for _, pool := range users.Pools {
		d.checkMachine(p, path, pool)
		if users.OnePod {
			if len(d.Zones) > 0 && len(pool.Zones) > 0 && !slices.ContainsFunc(pool.Zones, func(zone string) bool { return slices.Contains(d.Zones, zone) }) {
				p.Invalid(path.Child("zones"), d.Zones, "pool %s, whose pods mount the volume, has nodes only in %s; write a disk there, or choose another pool", pool.Name, check.And(pool.Zones))
			}
			continue
		}
		for _, zone := range pool.Zones {
			if len(d.Zones) > 0 && !slices.Contains(d.Zones, zone) {
				p.Invalid(path.Child("zones"), d.Zones, "pool %s, whose roles mount the volume, also has nodes in %s, which cannot reach the disk; give the pool only the zones of the disk, or use filestore or gcsFuse", pool.Name, zone)
				break
			}
		}
	}
}

func (d *PersistentDisk) checkMachine(p *check.Problems, path *field.Path, pool Pool) {
	if d.Create != nil && len(pool.Disks) > 0 && !slices.Contains(pool.Disks, d.Create.Type) {
		p.Invalid(path.Child("create", "type"), d.Create.Type, "is not supported by %s, the machine type of pool %s, whose pods mount the volume; write %s", pool.MachineType, pool.Name, check.Or(pool.Disks))
	}
}
