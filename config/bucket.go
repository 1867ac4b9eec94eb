package config

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
	"persia/gcp"
)

// GCSFuse is a Cloud Storage bucket, mounted through Cloud Storage FUSE.
type GCSFuse struct {
	// Bucket is the name of the bucket, without gs://.
	Bucket  string        `json:"bucket" form:"bucket"`
	Sidecar Sidecar       `json:"sidecar,omitempty"`
	Create  *CreateBucket `json:"create,omitempty"`
}

// Sidecar are the requests of the container that GKE adds to each pod that mounts the bucket. It may use more where
// the node has it. A pod that mounts several buckets has one such container, with the largest of each amount.
type Sidecar struct {
	// CPU is a quantity.
	CPU string `json:"cpu,omitempty" default:"250m" form:"quantity"`
	// Memory is a quantity. The default is for four files that are written at the same time.
	Memory string `json:"memory,omitempty" default:"320Mi" form:"bytes"`
	// EphemeralStorage is a quantity.
	EphemeralStorage string `json:"ephemeralStorage,omitempty" default:"5Gi" form:"bytes"`
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
type CreateBucket struct {
	// Location is a region, dual-region, or multi-region like NAM4. Default: the cluster's region. It cannot change
	// later.
	Location string `json:"location,omitempty"`
	// Versioning keeps overwritten and deleted objects as noncurrent versions.
	Versioning bool `json:"versioning,omitempty"`
	// SoftDeleteDays is how long you can restore deleted objects, which are billed meanwhile: 7 to 90 days, or 0.
	SoftDeleteDays int `json:"softDeleteDays,omitempty" default:"7" min:"0"`
	// DeleteNoncurrent deletes old noncurrent versions.
	DeleteNoncurrent *DeleteNoncurrent `json:"deleteNoncurrent,omitempty"`

	Creation `json:",inline"`
}

// DeleteNoncurrent deletes noncurrent versions: overwritten and deleted objects.
type DeleteNoncurrent struct {
	// Prefix is a directory of the bucket, like criteo/.
	Prefix string `json:"prefix" form:"prefix"`
	// AfterDays is how long a version is kept after it became noncurrent, at least 7.
	AfterDays int `json:"afterDays" min:"7"`
	// NewerVersions is how many newer versions must exist before one is deleted. With 1, the last version of a
	// deleted object stays.
	NewerVersions int `json:"newerVersions,omitempty" default:"1" min:"0"`
}

func (g *GCSFuse) String() string { return "gs://" + g.Bucket }

func (g *GCSFuse) resolve(site *Site) {
	if g.Create == nil {
		return
	}
	// Cloud Storage returns locations in upper case.
	g.Create.Location = strings.ToUpper(cmp.Or(g.Create.Location, site.Cluster.Region))
}

func (g *GCSFuse) check(p *input.Problems, path *field.Path, site *Site) {
	if g.Create == nil || !g.Create.check(p, path.Child("create"), site, g.Bucket) {
		return
	}
	if region := site.Cluster.Region; !gcp.LocationHolds(g.Create.Location, region) {
		p.Warn(path.Child("create", "location"), "%s is far from the cluster in %s, so checkpoints are slow and their traffic is billed; "+
			"remove it before you create the bucket", g.Create.Location, region)
	}
}
