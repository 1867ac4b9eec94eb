package volumespec

import (
	"fmt"
	"net"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/check"
	"persia/gcp"
)

// Filestore is a share of a Filestore instance in the cluster's network: an existing one,
// or with Create one that the stack creates.
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

func (f *Filestore) resolve(context Context) {
	if f.Create == nil {
		return
	}
	if f.Share == "" {
		f.Share = "checkpoints"
	}
	switch {
	case f.Location != "":
	case filestoreTiers[f.Create.Tier].regional:
		f.Location = context.Region
	case len(context.Zones) > 0:
		f.Location = context.Zones[0]
	}
}

func (f *Filestore) check(p *check.Problems, path *field.Path, context Context) {
	p.Name(path.Child("instance"), f.Instance, validation.IsDNS1035Label)
	checkDriver(p, path, "filestore", context)
	switch ip := path.Child("ip"); {
	case f.IP == "":
	case net.ParseIP(f.IP) == nil:
		p.Invalid(ip, f.IP, "must be an address like 10.0.0.2")
	default:
		check.Host(p, ip, f.IP)
	}
	if f.Create != nil {
		f.checkCreate(p, path, context)
		return
	}
	switch location := path.Child("location"); {
	case f.Location == "":
		p.Required(location, "write the zone or region of the instance, as `gcloud filestore instances list` shows it")
	case !check.Location(p, location, f.Location) || context.Region == "":
	case f.Location != context.Region && gcp.RegionOf(f.Location) != context.Region:
		p.Warn(location, "%s is far from the cluster in %s, so checkpoints are slow and their traffic is billed; use an instance in that region", f.Location, context.Region)
	}
	if f.Share == "" {
		p.Required(path.Child("share"), "write the name of the share, or create for an instance that the stack creates")
	}
	if f.IP == "" && context.Existing {
		p.Required(path.Child("ip"), "write the address of the instance, because the program does not contact Google Cloud for an existing cluster")
	}
}

func (f *Filestore) checkCreate(p *check.Problems, path *field.Path, context Context) {
	create := path.Child("create")
	if !checkCreatable(p, create, context) {
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
	case tier.regional && f.Location != context.Region:
		p.Invalid(path.Child("location"), f.Location, "must be the region of the cluster, %s, because the tier %s is regional", context.Region, f.Create.Tier)
	case !tier.regional:
		check.Zone(p, path.Child("location"), context.Region, f.Location)
	}
	if !shareForm.MatchString(f.Share) || len(f.Share) > tier.longestShare {
		p.Invalid(path.Child("share"), f.Share, "must be at most %d letters, digits, and underscores, and begin with a letter", tier.longestShare)
	}
	if key := create.Child("kmsKey"); f.Create.KMSKey != "" && !tier.encrypted {
		p.Invalid(key, f.Create.KMSKey, "is not supported by the tier %s, which uses only Google's own keys; choose ZONAL, REGIONAL or ENTERPRISE", f.Create.Tier)
	} else {
		check.KMSKey(p, key, f.Create.KMSKey, "Filestore", context.Region, context.Region)
	}
}

func (f *Filestore) checkUsers(*check.Problems, *field.Path, Users) {}

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
func (f *Filestore) checkSize(p *check.Problems, path *field.Path, volume *Volume) {
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
	p.Invalid(path, volume.Size, "must be %s in the tier %s of Filestore%s", check.Or(ranges), f.Create.Tier, hint)
}
