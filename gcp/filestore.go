package gcp

import "slices"

// filestoreBands are the capacities of Filestore instances in GiB, by tier (Filestore, "Service tiers"). No
// instance leaves its band.
var filestoreBands = map[string][]struct{ least, most, step int64 }{
	"BASIC_HDD":  {{1024, 65433, 1}},
	"BASIC_SSD":  {{2560, 65433, 1}},
	"ZONAL":      {{1024, 9984, 256}, {10240, 102400, 2560}},
	"REGIONAL":   {{100, 10239, 1}, {10240, 102400, 2560}},
	"ENTERPRISE": {{1024, 10240, 256}},
}

// FilestoreSizes returns the capacities of a tier next to a capacity, or that one if the tier has it, and the
// most to which an instance of that capacity can grow. All are in GiB. It returns none for an unknown tier.
func FilestoreSizes(tier string, capacity int64) (next []int64, most int64) {
	for _, band := range filestoreBands[tier] {
		if within := min(max(capacity, band.least), band.most); capacity >= band.least {
			most = band.most
			next = []int64{within - (within-band.least)%band.step}
		}
		if capacity <= band.most {
			up := max(0, capacity-band.least) + band.step - 1
			return slices.Compact(append(next, band.least+up-up%band.step)), most
		}
	}
	return next, most
}
