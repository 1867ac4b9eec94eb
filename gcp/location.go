package gcp

import (
	"maps"
	"slices"
	"strings"
)

// regions are the zones of Google Cloud's regions (Compute Engine, "Regions and zones", by
// catalogs/v8/gcp/vms.csv of skypilot-org/skypilot-catalog at
// 006059e0f18acb1341e22a27751e9f80df6ba92f, read in November 2026, which its authors generate
// from Compute Engine's API every seven hours). The table ages: Google adds regions and zones.
// It has no AI zones.
var regions = withZones(`
	africa-south1-abc asia-east1-abc asia-east2-abc asia-northeast1-abc asia-northeast2-abc
	asia-northeast3-abc asia-south1-abc asia-south2-abc asia-southeast1-abc asia-southeast2-abc
	asia-southeast3-abc australia-southeast1-abc australia-southeast2-abc europe-central2-abc
	europe-north1-abc europe-north2-abc europe-southwest1-abc europe-west1-bcd europe-west2-abc
	europe-west3-abc europe-west4-abc europe-west6-abc europe-west8-abc europe-west9-abc
	europe-west10-abc europe-west12-abc me-central1-abc me-central2-abc me-west1-abc
	northamerica-northeast1-abc northamerica-northeast2-abc northamerica-south1-abc
	southamerica-east1-abc southamerica-west1-abc us-central1-abcf us-east1-bcd us-east4-abc
	us-east5-abc us-south1-abc us-west1-abc us-west2-abc us-west3-abc us-west4-abc`)

// withZones expands a table like "us-east1-bcd us-west1-a" to the zones of each region.
func withZones(table string) map[string][]string {
	zones := map[string][]string{}
	for _, field := range strings.Fields(table) {
		region := RegionOf(field)
		for _, letter := range field[len(region)+1:] {
			zones[region] = append(zones[region], region+"-"+string(letter))
		}
	}
	return zones
}

// RegionOf returns the region of a zone.
func RegionOf(zone string) string { return zone[:max(0, strings.LastIndex(zone, "-"))] }

// Regions returns the known regions, sorted.
func Regions() []string { return slices.Sorted(maps.Keys(regions)) }

// Zones returns the known zones of a region, sorted. An unknown region has none.
func Zones(region string) []string { return regions[region] }

// IsAIZone reports whether a zone is an AI zone, like us-central1-ai1a (Compute Engine, "About
// AI zones").
func IsAIZone(zone string) bool { return strings.Contains(zone, "-ai") }

// multiRegions are the locations of buckets that span regions, by the beginnings of
// the names of those regions (Cloud Storage, "Bucket locations").
var multiRegions = map[string][]string{
	"US": {"us-"}, "EU": {"europe-"}, "ASIA": {"asia-"},
	"NAM4": {"us-central1", "us-east1"}, "EUR4": {"europe-north1", "europe-west4"}, "EUR5": {"europe-west1", "europe-west2"},
	"EUR7": {"europe-west2", "europe-west3"}, "EUR8": {"europe-west3", "europe-west6"}, "ASIA1": {"asia-northeast1", "asia-northeast2"},
}

// BucketLocations returns the known locations of buckets, in the case in which Cloud Storage
// returns them.
func BucketLocations() []string {
	locations := slices.Sorted(maps.Keys(multiRegions))
	for _, region := range Regions() {
		locations = append(locations, strings.ToUpper(region))
	}
	return locations
}

// LocationHolds reports whether a bucket in a location has its data in a region.
func LocationHolds(location, region string) bool {
	return strings.EqualFold(location, region) ||
		slices.ContainsFunc(multiRegions[location], func(prefix string) bool { return strings.HasPrefix(region, prefix) })
}
