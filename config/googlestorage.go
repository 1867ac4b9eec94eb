package config

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Handle is the share's name at its driver.
func (f *Filestore) Handle() string {
	return fmt.Sprintf("modeInstance/%s/%s/%s", f.Location, f.Instance, f.Share)
}

// Handle is the disk's name at its driver, and its identifier at Google Cloud.
func (d *PersistentDisk) Handle() string {
	where := "zones/" + strings.Join(d.Zones, "")
	if d.Regional() {
		where = "regions/" + d.Region()
	}
	return fmt.Sprintf("projects/%s/%s/disks/%s", d.Project, where, d.Disk)
}

// Regional reports whether a disk has replicas in two zones.
func (d *PersistentDisk) Regional() bool { return len(d.Zones) > 1 }

// Region is the region of the disk's zones.
func (d *PersistentDisk) Region() string {
	if len(d.Zones) == 0 || !zoneForm.MatchString(d.Zones[0]) {
		return ""
	}
	return d.Zones[0][:strings.LastIndex(d.Zones[0], "-")]
}

var (
	// bucketForm is the form of a bucket's name (Cloud Storage, "Bucket naming
	// requirements").
	bucketForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$`)
	locationForm = regexp.MustCompile(`^[A-Z][A-Z0-9-]+$`)
	shareForm    = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]{0,62}$`)
)

// sizes are capacities in GiB: from least to most, in steps.
type sizes struct{ least, most, step int64 }

// filestoreTier is a service tier of Filestore (Filestore, "Service tiers").
type filestoreTier struct {
	regional  bool
	encrypted bool // with a key of the user's
	sizes     []sizes
	// longestShare is the number of characters that a share's name may have.
	longestShare int
}

var filestoreTiers = map[string]filestoreTier{
	"BASIC_HDD":  {sizes: []sizes{{1024, 65433, 1}}, longestShare: 16},
	"BASIC_SSD":  {sizes: []sizes{{2560, 65433, 1}}, longestShare: 16},
	"ZONAL":      {encrypted: true, sizes: []sizes{{1024, 9984, 256}, {10240, 102400, 2560}}, longestShare: 63},
	"REGIONAL":   {regional: true, encrypted: true, sizes: []sizes{{1024, 9984, 256}, {10240, 102400, 2560}}, longestShare: 63},
	"ENTERPRISE": {regional: true, encrypted: true, sizes: []sizes{{1024, 10240, 256}}, longestShare: 63},
}

var filestoreTierNames = []string{"BASIC_HDD", "BASIC_SSD", "ZONAL", "REGIONAL", "ENTERPRISE"}

// SizeGiB is the volume's size in GiB, rounded up.
func (v *Volume) SizeGiB() int64 {
	size, err := parseQuantity(v.Size)
	if err != nil {
		return 0
	}
	return (size.Value() + 1<<30 - 1) >> 30
}

// filestoreSize checks that an instance of the size can be made.
func (v *validator) filestoreSize(path *field.Path, volume *Volume) {
	tier, known := filestoreTiers[volume.Filestore.Create.Tier]
	if !known {
		return
	}
	size, ranges := volume.SizeGiB(), make([]string, len(tier.sizes))
	for i, r := range tier.sizes {
		if size >= r.least && size <= r.most && (size-r.least)%r.step == 0 && wholeGiB(volume.Size) {
			return
		}
		ranges[i] = fmt.Sprintf("from %dGi to %dGi in steps of %dGi", r.least, r.most, r.step)
	}
	most, hint := tier.sizes[len(tier.sizes)-1].most, ""
	if size > most {
		hint = "; a checkpoint as large as that wants a bucket: use gcsFuse"
	}
	v.invalid(path, volume.Size, "must be %s in the tier %s of Filestore%s", or(ranges), volume.Filestore.Create.Tier, hint)
}

// mostDiskGiB is Compute Engine's limit for all of these types (Compute Engine,
// "About disks").
const mostDiskGiB = 65536

// leastDiskGiB is the smallest disk of a type. A regional pd-standard is larger.
var leastDiskGiB = map[string]int64{"pd-standard": 10, "pd-balanced": 10, "pd-ssd": 10, "hyperdisk-balanced": 4}

const leastRegionalStandardGiB = 200

func (v *validator) diskSize(path *field.Path, volume *Volume) {
	disk := volume.PersistentDisk
	least, known := leastDiskGiB[disk.Create.Type]
	if disk.Regional() && disk.Create.Type == "pd-standard" {
		least = leastRegionalStandardGiB
	}
	if size := volume.SizeGiB(); known && (size < least || size > mostDiskGiB || !wholeGiB(volume.Size)) {
		v.invalid(path, volume.Size, "must be from %dGi to %dGi, in whole Gi, for a disk of type %s", least, mostDiskGiB, disk.Create.Type)
	}
}

func wholeGiB(size string) bool {
	q, err := parseQuantity(size)
	return err == nil && q.Value()%(1<<30) == 0
}

func (v *validator) filestore(path *field.Path, volume *Volume) {
	source := volume.Filestore
	v.name(path.Child("instance"), source.Instance, validation.IsDNS1035Label)
	v.driverOn(path, "filestore", v.stack.Cluster.CSIDrivers.Filestore)
	if source.IP != "" && net.ParseIP(source.IP) == nil {
		v.invalid(path.Child("ip"), source.IP, "must be an address like 10.0.0.2")
	}
	if source.Create != nil {
		v.createFilestore(path, source)
		return
	}
	if source.Location == "" {
		v.required(path.Child("location"), "write the instance's zone or region, as `gcloud filestore instances list` shows it")
	}
	if source.Share == "" {
		v.required(path.Child("share"), "write the name of the instance's share, or create for an instance that is made")
	}
	if source.IP == "" && v.stack.Cluster.Existing != nil {
		v.required(path.Child("ip"), "write the instance's address, since on an existing cluster Google Cloud is not asked")
	}
}

func (v *validator) createFilestore(path *field.Path, source *Filestore) {
	create := path.Child("create")
	if !v.creatable(create) {
		return
	}
	if source.IP != "" {
		v.forbidden(path.Child("ip"), "Filestore chooses the address of an instance that is created; remove it")
	}
	if !oneOf(v, create.Child("tier"), source.Create.Tier, filestoreTierNames...) {
		return
	}
	tier, region := filestoreTiers[source.Create.Tier], v.stack.Cluster.Region
	switch {
	case tier.regional && source.Location != region:
		v.invalid(path.Child("location"), source.Location, "must be the cluster's region, %s, as the tier %s is regional", region, source.Create.Tier)
	case !tier.regional:
		v.zones(path.Child("location"), []string{source.Location})
	}
	if !shareForm.MatchString(source.Share) || len(source.Share) > tier.longestShare {
		v.invalid(path.Child("share"), source.Share, "must have at most %d letters, digits and underscores, a letter first", tier.longestShare)
	}
	if key := create.Child("kmsKey"); source.Create.KMSKey != "" && !tier.encrypted {
		v.invalid(key, source.Create.KMSKey, "is not for the tier %s, which only Google's own keys encrypt; choose ZONAL, REGIONAL or ENTERPRISE", source.Create.Tier)
	} else {
		v.kmsKey(key, source.Create.KMSKey, "Filestore", region)
	}
}

func (v *validator) gcsFuse(path *field.Path, volume *Volume) {
	source := volume.GCSFuse
	v.bucket(path.Child("bucket"), source.Bucket)
	sidecar := path.Child("sidecar")
	v.sidecarAmount(sidecar.Child("cpu"), source.Sidecar.CPU)
	v.sidecarAmount(sidecar.Child("memory"), source.Sidecar.Memory)
	v.sidecarAmount(sidecar.Child("ephemeralStorage"), source.Sidecar.EphemeralStorage)
	if create := path.Child("create"); source.Create != nil && v.creatable(create) {
		v.createBucket(create, source.Create)
	}
}

func (v *validator) sidecarAmount(path *field.Path, amount string) {
	switch q, err := parseQuantity(amount); {
	case err != nil:
		v.invalid(path, amount, "%s", err)
	case q.Sign() <= 0:
		v.invalid(path, amount, "must be more than 0; leave it out for its default")
	}
}

func (v *validator) bucket(path *field.Path, bucket string) {
	switch bare, prefixed := strings.CutPrefix(bucket, "gs://"); {
	case bucket == "":
		v.required(path, "write the name of a bucket")
	case prefixed:
		v.invalid(path, bucket, "must be the name alone; write %s", strings.TrimSuffix(bare, "/"))
	case !bucketForm.MatchString(bucket):
		v.invalid(path, bucket, "must be the name of a bucket: 3 to 63 lower case letters, digits, hyphens, underscores and dots, with a letter or digit at both ends")
	}
}

func (v *validator) createBucket(path *field.Path, create *CreateBucket) {
	if !locationForm.MatchString(create.Location) {
		v.invalid(path.Child("location"), create.Location, "must be a region like us-central1, or a dual- or multi-region like NAM4 or US")
	}
	if days := *create.SoftDeleteDays; days != 0 && (days < 7 || days > 90) {
		v.invalid(path.Child("softDeleteDays"), days, "must be from 7 to 90, or 0 for not at all")
	}
	if days := create.DeleteAfterDays; days < 0 {
		v.invalid(path.Child("deleteAfterDays"), days, "must be at least 1; remove it to keep all checkpoints")
	}
	v.kmsKey(path.Child("kmsKey"), create.KMSKey, "Cloud Storage", strings.ToLower(create.Location))
}

func (v *validator) persistentDisk(path *field.Path, volume *Volume) {
	source := volume.PersistentDisk
	v.name(path.Child("disk"), source.Disk, validation.IsDNS1035Label)
	v.driverOn(path, "persistentDisk", v.stack.Cluster.CSIDrivers.PersistentDisk)
	if source.Project == "" && v.stack.Cluster.Existing != nil {
		v.required(path.Child("project"), "write the disk's Google Cloud project, of which nothing else is said on an existing cluster")
	}
	v.diskZones(path.Child("zones"), source)
	if create := path.Child("create"); source.Create != nil && v.creatable(create) {
		v.createDisk(create, source)
	}
}

func (v *validator) diskZones(path *field.Path, disk *PersistentDisk) {
	switch {
	case len(disk.Zones) == 0 && !v.decoded(clusterKey):
	case len(disk.Zones) == 0:
		v.required(path, "write the disk's zone, as `gcloud compute disks list` shows it")
	case len(disk.Zones) > 2:
		v.invalid(path, disk.Zones, "must be one zone, or the two of a regional disk")
	case v.stack.Cluster.Existing == nil:
		v.zones(path, disk.Zones)
	}
}

func (v *validator) createDisk(path *field.Path, disk *PersistentDisk) {
	if project := v.stack.Project; disk.Project != project {
		v.invalid(path, disk.Project, "disks are created in the stack's project, %s; remove project", project)
	}
	types := []string{"pd-standard", "pd-balanced", "pd-ssd"}
	if !disk.Regional() {
		types = append(types, "hyperdisk-balanced")
	}
	oneOf(v, path.Child("type"), disk.Create.Type, types...)
	v.kmsKey(path.Child("kmsKey"), disk.Create.KMSKey, "Compute Engine", v.stack.Cluster.Region, "global")
}

// nearDisk checks that the nodes of the pools that mount a disk are in its zones, on
// machines that take it.
func (v *validator) nearDisk(path *field.Path, volume *Volume, pools []string) {
	disk := volume.PersistentDisk
	if disk == nil || len(disk.Zones) == 0 || v.stack.Cluster.Existing != nil {
		return
	}
	for _, name := range pools {
		pool, _ := v.stack.pool(name)
		for _, zone := range pool.Zones {
			if !slices.Contains(disk.Zones, zone) {
				v.invalid(path.Child("persistentDisk", "zones"), disk.Zones, "pool %s, whose roles mount the volume, has nodes in %s too, which cannot reach the disk; give the pool the disk's zones alone, or use filestore or gcsFuse", name, zone)
				break
			}
		}
		machine, known := pool.Machine(v.stack.MachineTypes)
		if known && disk.Create != nil && !slices.Contains(machine.BootDisks(), disk.Create.Type) {
			v.invalid(path.Child("persistentDisk", "create", "type"), disk.Create.Type, "is not for %s, the machines of pool %s, whose roles mount the volume; write %s", machine.Type, name, or(machine.BootDisks()))
		}
	}
}

// creatable refuses to create anything on an existing cluster.
func (v *validator) creatable(path *field.Path) bool {
	if v.stack.Cluster.Existing == nil {
		return true
	}
	v.forbidden(path, "on an existing cluster nothing of Google Cloud is created; make it yourself, and remove create")
	return false
}

// driverOn checks that the cluster has the driver of a source.
func (v *validator) driverOn(path *field.Path, driver string, on bool) {
	at := field.NewPath(clusterKey, "csiDrivers", driver)
	if !on && v.Decoded(at) {
		v.invalid(at, false, "must be true, as this driver mounts the volume of %s; remove it, or use volumes of another kind", path)
	}
}
