package config

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
	"persia/gcp"
)

// PersistentDisk is a Compute Engine disk: an existing one, or with `create` one that the
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

func (d *PersistentDisk) resolve(stack *Stack) {
	if d.Project == "" {
		d.Project = stack.Project
	}
	if d.Create != nil && len(d.Zones) == 0 && len(stack.Cluster.Zones) > 0 {
		d.Zones = stack.Cluster.Zones[:1:1]
	}
}

func (d *PersistentDisk) check(p *input.Problems, path *field.Path, stack *Stack) {
	p.Name(path.Child("disk"), d.Disk, validation.IsDNS1035Label)
	if d.Project == "" && stack.existing() {
		p.Required(path.Child("project"), "write the Google Cloud project of the disk, because a stack on an existing cluster has none")
	}
	d.checkZones(p, path.Child("zones"), stack)
	input.OneOf(p, path.Child("fsType"), d.FSType, gcp.FileSystems...)
	if create := path.Child("create"); d.Create != nil && checkCreatable(p, create, stack) {
		d.checkCreate(p, create, stack)
	}
}

func (d *PersistentDisk) checkZones(p *input.Problems, path *field.Path, stack *Stack) {
	switch {
	case len(d.Zones) == 0:
		p.Required(path, "write the zone of the disk, as `gcloud compute disks list` shows it")
	case len(d.Zones) > 2:
		p.Invalid(path, d.Zones, "must be one zone, or the two of a regional disk")
	case stack.existing() && !input.IsRegion(d.Region()):
		p.Invalid(path.Index(0), d.Zones[0], "must be a zone, like us-central1-a")
	case stack.existing():
		input.Zones(p, path, d.Region(), d.Zones)
	default:
		input.Zones(p, path, stack.Cluster.Region, d.Zones)
	}
}

func (d *PersistentDisk) checkCreate(p *input.Problems, path *field.Path, stack *Stack) {
	if d.Project != stack.Project {
		p.Invalid(path, d.Project, "the stack creates disks in its own project, %s; remove project", stack.Project)
	}
	if d.Regional() && d.Create.Type == "hyperdisk-balanced" {
		p.Invalid(path.Child("type"), d.Create.Type, "must be pd-standard, pd-balanced or pd-ssd for a regional disk")
	}
	input.KMSKey(p, path.Child("kmsKey"), d.Create.KMSKey, "Compute Engine", stack.Cluster.Region, stack.Cluster.Region, "global")
	checkDeletion(p, path, d.Create.DeleteWithStack, d.Disk)
}

// mostDiskGiB is Compute Engine's limit for all of these types (Compute Engine,
// "About disks").
const mostDiskGiB = 65536

// leastDiskGiB is the minimum size of a disk by its type, except for a regional pd-standard.
var leastDiskGiB = map[string]int64{"pd-standard": 10, "pd-balanced": 10, "pd-ssd": 10, "hyperdisk-balanced": 4}

const leastRegionalStandardGiB = 200

func (d *PersistentDisk) checkSize(p *input.Problems, path *field.Path, volume *Volume) {
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
func (d *PersistentDisk) checkUsers(p *input.Problems, path *field.Path, users volumeUsers) {
	for _, pool := range users.Pools {
		d.checkMachine(p, path, pool)
		if users.OnePod {
			if len(d.Zones) > 0 && len(pool.Zones) > 0 && !slices.ContainsFunc(pool.Zones, func(zone string) bool { return slices.Contains(d.Zones, zone) }) {
				p.Invalid(path.Child("zones"), d.Zones, "pool %s, whose pods mount the volume, has nodes only in %s; write a disk there, or choose another pool", pool.Name, input.And(pool.Zones))
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

func (d *PersistentDisk) checkMachine(p *input.Problems, path *field.Path, pool volumePool) {
	if d.Create != nil && len(pool.Disks) > 0 && !slices.Contains(pool.Disks, d.Create.Type) {
		p.Invalid(path.Child("create", "type"), d.Create.Type, "is not supported by %s, the machine type of pool %s, whose pods mount the volume; write %s", pool.MachineType, pool.Name, input.Or(pool.Disks))
	}
}

// Filestore is a share of a Filestore instance in the cluster's network: an existing one,
// or with `create` one that the stack creates.
type Filestore struct {
	// Instance is the name of the instance.
	Instance string `json:"instance"`
	// Location is the zone of the instance, or its region in the tiers REGIONAL and ENTERPRISE.
	// Default with create: the first zone of the cluster, or its region.
	Location string `json:"location,omitempty"`
	// Share is the name of the share. Default with create: checkpoints.
	Share string `json:"share,omitempty"`
	// IP is the address of the instance. Default: the stack asks Filestore for it, which
	// is not possible on an existing cluster.
	IP     string           `json:"ip,omitempty"`
	Create *CreateFilestore `json:"create,omitempty"`
}

// CreateFilestore creates the instance, with the size of the volume as its capacity. `pulumi
// destroy` keeps the instance and its network.
type CreateFilestore struct {
	// Tier is the service tier. You cannot change it later.
	Tier string `json:"tier,omitempty" default:"ZONAL" enum:"BASIC_HDD,BASIC_SSD,ZONAL,REGIONAL,ENTERPRISE"`
	// KMSKey is the Cloud KMS key that encrypts the instance, in its region. You cannot change it
	// later. Default: Google's own.
	KMSKey string `json:"kmsKey,omitempty"`
	// DeleteWithStack is the name of the instance, to have `pulumi destroy` delete it with all
	// checkpoints. Default: it is kept.
	DeleteWithStack string `json:"deleteWithStack,omitempty"`
}

// Handle returns the ID by which the driver knows the share.
func (f *Filestore) Handle() string {
	return fmt.Sprintf("modeInstance/%s/%s/%s", f.Location, f.Instance, f.Share)
}

func (f *Filestore) Field() string { return "filestore" }

func (f *Filestore) String() string {
	return fmt.Sprintf("Filestore instance %s in %s", f.Instance, f.Location)
}

func (f *Filestore) Identity() string {
	if f.Instance == "" {
		return ""
	}
	return "csi " + gcp.DriverFilestore + " " + f.Handle()
}

func (f *Filestore) API() string { return "file.googleapis.com" }

func (f *Filestore) Disks(int64) []capacity.Disk { return nil }

func (f *Filestore) Creation() *Creation {
	if f.Create == nil {
		return nil
	}
	return &Creation{KMSKey: f.Create.KMSKey, DeletesData: f.Create.DeleteWithStack != "", InNetwork: true}
}

func (f *Filestore) traits() traits {
	return traits{access: corev1.ReadWriteMany, deletable: true, driver: gcp.DriverFilestore}
}

func (f *Filestore) resolve(stack *Stack) {
	if f.Create == nil {
		return
	}
	if f.Share == "" {
		f.Share = "checkpoints"
	}
	switch {
	case f.Location != "":
	case filestoreTiers[f.Create.Tier].regional:
		f.Location = stack.Cluster.Region
	case len(stack.Cluster.Zones) > 0:
		f.Location = stack.Cluster.Zones[0]
	}
}

func (f *Filestore) check(p *input.Problems, path *field.Path, stack *Stack) {
	p.Name(path.Child("instance"), f.Instance, validation.IsDNS1035Label)
	switch ip := path.Child("ip"); {
	case f.IP == "":
	case net.ParseIP(f.IP) == nil:
		p.Invalid(ip, f.IP, "must be an address like 10.0.0.2")
	default:
		input.Host(p, ip, f.IP)
	}
	if f.Create != nil {
		f.checkCreate(p, path, stack)
		return
	}
	if location := path.Child("location"); f.Location == "" {
		p.Required(location, "write the zone or region of the instance, as `gcloud filestore instances list` shows it")
	} else {
		input.Location(p, location, f.Location)
	}
	if f.Share == "" {
		p.Required(path.Child("share"), "write the name of the share, or create for an instance that the stack creates")
	}
	if f.IP == "" && stack.existing() {
		p.Required(path.Child("ip"), "write the address of the instance, because the program does not contact Google Cloud for an existing cluster")
	}
}

func (f *Filestore) checkCreate(p *input.Problems, path *field.Path, stack *Stack) {
	create := path.Child("create")
	if !checkCreatable(p, create, stack) {
		return
	}
	if f.IP != "" {
		p.Forbidden(path.Child("ip"), "Filestore chooses the address of an instance that the stack creates; remove it")
	}
	checkDeletion(p, create, f.Create.DeleteWithStack, f.Instance)
	tier, known := filestoreTiers[f.Create.Tier]
	if !known {
		return // reported by the enumeration
	}
	switch {
	case tier.regional && f.Location != stack.Cluster.Region:
		p.Invalid(path.Child("location"), f.Location, "must be the region of the cluster, %s, because the tier %s is regional", stack.Cluster.Region, f.Create.Tier)
	case !tier.regional:
		input.Zone(p, path.Child("location"), stack.Cluster.Region, f.Location)
	}
	if !shareForm.MatchString(f.Share) || len(f.Share) > tier.longestShare {
		p.Invalid(path.Child("share"), f.Share, "must be at most %d letters, digits, and underscores, and begin with a letter", tier.longestShare)
	}
	if key := create.Child("kmsKey"); f.Create.KMSKey != "" && !tier.encrypted {
		p.Invalid(key, f.Create.KMSKey, "is not supported by the tier %s, which uses only Google's own keys; choose ZONAL, REGIONAL or ENTERPRISE", f.Create.Tier)
	} else {
		input.KMSKey(p, key, f.Create.KMSKey, "Filestore", stack.Cluster.Region, stack.Cluster.Region)
	}
}

func (f *Filestore) checkUsers(*input.Problems, *field.Path, volumeUsers) {}

var shareForm = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]{0,62}$`)

// sizes is a range of capacities in GiB.
type sizes struct{ least, most, step int64 }

// filestoreTier is a service tier of Filestore (Filestore, "Service tiers").
type filestoreTier struct {
	regional  bool
	encrypted bool // supports Cloud KMS keys
	sizes     []sizes
	// longestShare is the maximum length of the name of a share.
	longestShare int
}

var filestoreTiers = map[string]filestoreTier{
	"BASIC_HDD":  {sizes: []sizes{{1024, 65433, 1}}, longestShare: 16},
	"BASIC_SSD":  {sizes: []sizes{{2560, 65433, 1}}, longestShare: 16},
	"ZONAL":      {encrypted: true, sizes: []sizes{{1024, 9984, 256}, {10240, 102400, 2560}}, longestShare: 63},
	"REGIONAL":   {regional: true, encrypted: true, sizes: []sizes{{1024, 9984, 256}, {10240, 102400, 2560}}, longestShare: 63},
	"ENTERPRISE": {regional: true, encrypted: true, sizes: []sizes{{1024, 10240, 256}}, longestShare: 63},
}

// checkSize checks that the tier supports the size of the volume.
func (f *Filestore) checkSize(p *input.Problems, path *field.Path, volume *Volume) {
	if f.Create == nil {
		return
	}
	tier, known := filestoreTiers[f.Create.Tier]
	if !known {
		return
	}
	size, ranges := volume.SizeGiB(), make([]string, len(tier.sizes))
	for i, r := range tier.sizes {
		if size >= r.least && size <= r.most && (size-r.least)%r.step == 0 && volume.wholeGiB() {
			return
		}
		ranges[i] = fmt.Sprintf("from %dGi to %dGi in steps of %dGi", r.least, r.most, r.step)
	}
	hint := ""
	if size > tier.sizes[len(tier.sizes)-1].most {
		hint = "; a checkpoint as large as that needs a bucket: use gcsFuse"
	}
	p.Invalid(path, volume.Size, "must be %s in the tier %s of Filestore%s", input.Or(ranges), f.Create.Tier, hint)
}
