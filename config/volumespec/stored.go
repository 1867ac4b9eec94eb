package volumespec

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/gcp"
)

// Stored is a volume of the stack with its path in the stack file.
type Stored struct {
	Volume
	Path *field.Path
	// Contents completes "all …", like checkpoints.
	Contents string
}

// Warn warns of settings that delete data, and of a bucket far from the cluster's region:
// Google Cloud bills the traffic of checkpoints.
func (v Stored) Warn(p *check.Problems, region string) {
	if v.DeletesData() {
		p.Warn(v.Path, "`pulumi destroy` deletes %s with all %s, as the stack file says", v.Source(), v.Contents)
	}
	g := v.GCSFuse
	if g == nil || g.Create == nil {
		return
	}
	if rule := g.Create.DeleteNoncurrent; rule != nil {
		p.Warn(v.Path, "Cloud Storage deletes files that were overwritten or deleted in %s/%s after %d days, as the stack file says", g, rule.Prefix, rule.AfterDays)
	}
	if location := g.Create.Location; region != "" && slices.Contains(gcp.BucketLocations(), location) && !gcp.LocationHolds(location, region) {
		p.Warn(v.Path.Child("gcsFuse", "create", "location"), "%s is far from the cluster in %s, so checkpoints are slow and their traffic is billed; write location: %s, or omit it", location, region, region)
	}
}
