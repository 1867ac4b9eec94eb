package config

import (
	"net"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
	"persia/gcp"
)

// GCSFuse is a Cloud Storage bucket, mounted through Cloud Storage FUSE: an existing one,
// or with `create` one that the stack creates. The stack grants the jobs that mount it
// access to its objects.
type GCSFuse struct {
	// Bucket is the name of the bucket, without gs://.
	Bucket  string        `json:"bucket"`
	Sidecar Sidecar       `json:"sidecar,omitempty"`
	Create  *CreateBucket `json:"create,omitempty"`
}

// Sidecar sets the requests of the container that GKE adds to each pod that mounts the
// bucket. It may use more where the node has it. A pod that mounts several buckets
// has one such container, with the largest of each amount.
type Sidecar struct {
	// CPU is a quantity.
	CPU string `json:"cpu,omitempty" default:"250m" form:"quantity"`
	// Memory is a quantity.
	Memory string `json:"memory,omitempty" default:"256Mi" form:"quantity"`
	// EphemeralStorage is a quantity. For embedding parameter servers, it requests at least what
	// `hashmapShards` of the job says that they write at the same time.
	EphemeralStorage string `json:"ephemeralStorage,omitempty" default:"5Gi" form:"quantity"`
}

// Requests returns the amounts, with 0 for invalid quantities.
func (s Sidecar) Requests() capacity.Resources {
	amount := func(text string) *resource.Quantity {
		q, _ := input.ParseQuantity(text)
		return &q
	}
	return capacity.Resources{
		MilliCPU:       amount(s.CPU).MilliValue(),
		MemoryBytes:    amount(s.Memory).Value(),
		EphemeralBytes: amount(s.EphemeralStorage).Value(),
	}
}

// CreateBucket creates the bucket, with uniform bucket-level access and public access prevention.
// `pulumi destroy` keeps it.
type CreateBucket struct {
	// Location is a region, or a dual-region or multi-region like NAM4. Default: the
	// region of the cluster. You cannot change it later.
	Location string `json:"location,omitempty"`
	// Versioning keeps overwritten and deleted objects as noncurrent versions.
	Versioning bool `json:"versioning,omitempty"`
	// SoftDeleteDays is how long you can restore deleted objects: from 7 to 90 days, or 0
	// to delete them at once.
	SoftDeleteDays int `json:"softDeleteDays,omitempty" default:"7" min:"0"`
	// DeleteNoncurrent makes Cloud Storage delete old noncurrent versions. Default: they
	// are kept.
	DeleteNoncurrent *DeleteNoncurrent `json:"deleteNoncurrent,omitempty"`
	// KMSKey is the Cloud KMS key that encrypts the objects, in the location of the bucket.
	// Default: Google's own.
	KMSKey string `json:"kmsKey,omitempty"`
	// DeleteWithStack is the name of the bucket, to have `pulumi destroy` delete it with all
	// checkpoints. Default: it is kept.
	DeleteWithStack string `json:"deleteWithStack,omitempty"`
}

// DeleteNoncurrent deletes noncurrent versions: overwritten and deleted objects. It never deletes
// a live object.
type DeleteNoncurrent struct {
	// Prefix is the directory of the bucket to which the rule applies, like checkpoints/.
	Prefix string `json:"prefix"`
	// AfterDays is how many days a version is kept after it became noncurrent, at least
	// 7.
	AfterDays int `json:"afterDays" min:"7"`
	// NewerVersions is how many newer versions of an object must exist before a version is
	// deleted. With 1, the last version of a deleted object is kept.
	NewerVersions int `json:"newerVersions,omitempty" default:"1" min:"0"`
}

func (g *GCSFuse) Field() string  { return "gcsFuse" }
func (g *GCSFuse) String() string { return "gs://" + g.Bucket }

func (g *GCSFuse) Identity() string {
	if g.Bucket == "" {
		return ""
	}
	return "csi " + gcp.DriverGCSFuse + " " + g.Bucket
}

func (g *GCSFuse) API() string { return "storage.googleapis.com" }

func (g *GCSFuse) Disks(int64) []capacity.Disk { return nil }

func (g *GCSFuse) Creation() *Creation {
	if g.Create == nil {
		return nil
	}
	return &Creation{KMSKey: g.Create.KMSKey, DeletesData: g.Create.DeleteWithStack != ""}
}

func (g *GCSFuse) traits() traits {
	return traits{access: corev1.ReadWriteMany, driver: gcp.DriverGCSFuse}
}

func (g *GCSFuse) resolve(stack *Stack) {
	if g.Create == nil {
		return
	}
	if g.Create.Location == "" {
		g.Create.Location = stack.Cluster.Region
	}
	// Cloud Storage returns locations in upper case.
	g.Create.Location = strings.ToUpper(g.Create.Location)
}

func (g *GCSFuse) check(p *input.Problems, path *field.Path, stack *Stack) {
	checkBucket(p, path.Child("bucket"), g.Bucket)
	sidecar := path.Child("sidecar")
	checkAmount(p, sidecar.Child("cpu"), g.Sidecar.CPU)
	checkBytes(p, sidecar.Child("memory"), g.Sidecar.Memory)
	checkBytes(p, sidecar.Child("ephemeralStorage"), g.Sidecar.EphemeralStorage)
	if create := path.Child("create"); g.Create != nil && checkCreatable(p, create, stack) {
		g.Create.check(p, create, g.Bucket, stack)
	}
}

func (g *GCSFuse) checkSize(*input.Problems, *field.Path, *Volume)      {}
func (g *GCSFuse) checkUsers(*input.Problems, *field.Path, volumeUsers) {}

func checkAmount(p *input.Problems, path *field.Path, amount string) {
	switch q, err := input.ParseQuantity(amount); {
	case err != nil:
		p.Invalid(path, amount, "%s", err)
	case q.Sign() <= 0:
		p.Invalid(path, amount, "must be more than 0; omit it for the default")
	}
}

// checkBytes is checkAmount for amounts in bytes.
func checkBytes(p *input.Problems, path *field.Path, amount string) {
	checkAmount(p, path, amount)
	if q, err := input.ParseQuantity(amount); err == nil && q.Sign() > 0 && q.CmpInt64(1<<20) < 0 {
		p.Invalid(path, amount, "is less than 1Mi; quantities are in bytes, so write a unit, like 256Mi")
	}
}

var (
	// bucketForm matches names of buckets (Cloud Storage, "Bucket naming requirements").
	bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$`)
	// googleBucket matches names that Google reserves, and names that look like them.
	googleBucket = regexp.MustCompile(`^goog|g[o0]{2}g[l1]e`)
	locationForm = regexp.MustCompile(`^[A-Z][A-Z0-9-]+$`)
)

func checkBucket(p *input.Problems, path *field.Path, bucket string) {
	switch bare, prefixed := strings.CutPrefix(bucket, "gs://"); {
	case bucket == "":
		p.Required(path, "write the name of a bucket")
	case prefixed:
		p.Invalid(path, bucket, "must be only the name; write %s", strings.TrimSuffix(bare, "/"))
	case !bucketForm.MatchString(bucket):
		p.Invalid(path, bucket, "must be the name of a bucket: 3 to 63 lower case letters, digits, hyphens, underscores, and dots, with a letter or digit at both ends")
	case net.ParseIP(bucket) != nil:
		p.Invalid(path, bucket, "is an IP address, which cannot be the name of a bucket; write a name like my-project-checkpoints")
	case googleBucket.MatchString(bucket):
		p.Invalid(path, bucket, "resembles Google's name, which Cloud Storage refuses; write a name like my-project-checkpoints")
	case strings.Contains(bucket, ".."):
		p.Invalid(path, bucket, "must not have two dots in a row")
	}
}

func (c *CreateBucket) check(p *input.Problems, path *field.Path, bucket string, stack *Stack) {
	if strings.Contains(bucket, ".") {
		p.Invalid(path, bucket, "only the verified owner of a domain can create a bucket with a dot in its name; write a name without dots, or remove create")
	}
	if region := strings.ToLower(c.Location); !locationForm.MatchString(c.Location) || strings.Contains(region, "-") && !input.IsRegion(region) {
		p.Invalid(path.Child("location"), c.Location, "must be a region like us-central1, or a dual- or multi-region like NAM4 or US")
	}
	if days := c.SoftDeleteDays; days != 0 && (days < 7 || days > 90) {
		p.Invalid(path.Child("softDeleteDays"), days, "must be from 7 to 90, or 0 to turn soft delete off")
	}
	if at := path.Child("deleteNoncurrent"); c.DeleteNoncurrent != nil {
		if !c.Versioning {
			p.Forbidden(at, "requires versioning, because without it there are no noncurrent versions; write versioning: true, or remove it")
		}
		c.DeleteNoncurrent.check(p, at)
	}
	input.KMSKey(p, path.Child("kmsKey"), c.KMSKey, "Cloud Storage", stack.Cluster.Region, c.keyLocation())
	checkDeletion(p, path, c.DeleteWithStack, bucket)
}

// keyLocation returns the location of the bucket by its name in Cloud KMS, where its key must
// be: the name in lower case, except for the multi-region EU (Cloud KMS, "Cloud KMS
// locations").
func (c *CreateBucket) keyLocation() string {
	if c.Location == "EU" {
		return "europe"
	}
	return strings.ToLower(c.Location)
}

func (d *DeleteNoncurrent) check(p *input.Problems, path *field.Path) {
	switch at := path.Child("prefix"); {
	case d.Prefix == "":
		p.Required(at, "write the directory that the rule applies to, like checkpoints/")
	case !strings.HasSuffix(d.Prefix, "/") || strings.HasPrefix(d.Prefix, "/") || strings.Contains(d.Prefix, "//"):
		p.Invalid(at, d.Prefix, "must be a directory in the bucket, without a leading slash and with one at the end, like checkpoints/")
	}
}
