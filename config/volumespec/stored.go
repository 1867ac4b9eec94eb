package volumespec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/gcp"
)

// Stored is a volume of the stack with its path in the stack file.
type Stored struct {
	Volume
	Path *field.Path
	// Contents completes "all …", like checkpoints.
	Contents string
}

// Warnings warns of settings that delete data, and of a bucket far from the cluster's region:
// Google Cloud bills the traffic of checkpoints.
func (v Stored) Warnings(region string) []string {
	var warnings []string
	if v.DeletesData() {
		warnings = append(warnings, fmt.Sprintf("%s: `pulumi destroy` deletes %s with all %s, as the stack file says", v.Path, v.Source(), v.Contents))
	}
	g := v.GCSFuse
	if g == nil || g.Create == nil {
		return warnings
	}
	if rule := g.Create.DeleteNoncurrent; rule != nil {
		warnings = append(warnings, fmt.Sprintf("%s: Cloud Storage deletes files that were overwritten or deleted in %s/%s after %d days, as the stack file says", v.Path, g, rule.Prefix, rule.AfterDays))
	}
	if location := g.Create.Location; region != "" && !gcp.LocationHolds(location, region) {
		warnings = append(warnings, fmt.Sprintf("%s: %s is far from the cluster in %s, so checkpoints are slow and their traffic is billed; write location: %s, or omit it",
			v.Path.Child("gcsFuse", "create", "location"), location, region, region))
	}
	return warnings
}
