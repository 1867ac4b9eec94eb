package gcp

import (
	"maps"
	"slices"
	"strings"
)

// RegionOf returns the region of a zone.
func RegionOf(zone string) string { return zone[:max(0, strings.LastIndex(zone, "-"))] }

// Regions returns the known regions, sorted.
func Regions() []string { return slices.Sorted(maps.Keys(tables().Regions)) }

// Zones returns the known zones of a region, sorted. An unknown region has none.
func Zones(region string) []string { return tables().Regions[region] }

// IsAIZone reports whether a zone is an AI zone, like us-central1-ai1a (Compute Engine, "About
// AI zones").
func IsAIZone(zone string) bool { return strings.Contains(zone, "-ai") }

// BucketLocations returns the known locations of buckets, in the case in which Cloud Storage
// returns them.
func BucketLocations() []string {
	locations := slices.Sorted(maps.Keys(tables().MultiRegions))
	for _, region := range Regions() {
		locations = append(locations, strings.ToUpper(region))
	}
	return locations
}

// LocationHolds reports whether a bucket in a location has its data in a region.
func LocationHolds(location, region string) bool {
	return strings.EqualFold(location, region) ||
		slices.ContainsFunc(tables().MultiRegions[location], func(prefix string) bool { return strings.HasPrefix(region, prefix) })
}
