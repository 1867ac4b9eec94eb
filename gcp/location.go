package gcp

import (
	"slices"
	"strings"
)

// multiRegions are the locations of buckets that span regions, by the beginnings of
// the names of those regions (Cloud Storage, "Bucket locations").
var multiRegions = map[string][]string{
	"US": {"us-"}, "EU": {"europe-"}, "ASIA": {"asia-"},
	"NAM4": {"us-central1", "us-east1"}, "EUR4": {"europe-north1", "europe-west4"}, "EUR5": {"europe-west1", "europe-west2"},
	"EUR7": {"europe-west2", "europe-west3"}, "EUR8": {"europe-west3", "europe-west6"}, "ASIA1": {"asia-northeast1", "asia-northeast2"},
}

// LocationHolds reports whether a bucket in a location has its data in a region.
func LocationHolds(location, region string) bool {
	return strings.EqualFold(location, region) ||
		slices.ContainsFunc(multiRegions[location], func(prefix string) bool { return strings.HasPrefix(region, prefix) })
}
