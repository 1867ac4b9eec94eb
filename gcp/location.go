package gcp

import (
	"slices"
	"strings"
)

// RegionOf returns the region of a zone.
func RegionOf(zone string) string { return zone[:max(0, strings.LastIndex(zone, "-"))] }

// LocationHolds reports whether a bucket in a location has its data in a region.
func LocationHolds(location, region string) bool {
	return strings.EqualFold(location, region) ||
		slices.ContainsFunc(tables().MultiRegions[location], func(prefix string) bool { return strings.HasPrefix(region, prefix) })
}
