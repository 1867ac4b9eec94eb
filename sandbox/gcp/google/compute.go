package google

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"persia/gcp"
)

const computeURL = "https://www.googleapis.com/compute/v1/"

// compute completes a body as Compute Engine does: links are full URLs.
func compute(name string, body Body) {
	body["name"] = Segment(name)
	body["selfLink"] = computeURL + name
	fill(body, "creationTimestamp", "2026-08-01T00:00:00.000-07:00")
	for field, collection := range map[string]string{"region": "regions", "zone": "zones"} {
		if location := Element(name, collection); location != "" {
			body[field] = fmt.Sprintf("%sprojects/%s/%s/%s", computeURL, Element(name, "projects"), collection, location)
		}
	}
	if network := Text(body, "network"); network != "" {
		body["network"] = computeURL + networkOf(name, network)
	}
}

func completeNetwork(_ *Cloud, name string, body, _ Body) error {
	compute(name, body)
	body["selfLinkWithId"] = body["selfLink"]
	fill(body, "routingConfig.routingMode", "REGIONAL")
	return nil
}

// completeSubnetwork refuses ranges that overlap, and to change or take away a secondary range that a cluster uses†.
func completeSubnetwork(c *Cloud, name string, body, old Body) error {
	compute(name, body)
	ranges := rangesOf(body)
	for i, cidr := range ranges {
		field := "resource.ipCidrRange"
		if i > 0 {
			field = fmt.Sprintf("resource.secondaryIpRanges[%d].ipCidrRange", i-1)
		}
		if err := checkRange(field, cidr, name, ranges[:i]); err != nil {
			return err
		}
	}
	body["gatewayAddress"] = netip.MustParsePrefix(ranges[0]).Masked().Addr().Next().String()
	fill(body, "fingerprint", hash(name))
	clusters, err := c.List(Cluster)
	if err != nil {
		return err
	}
	for cluster, of := range clusters {
		for _, secondary := range Objects(old, "secondaryIpRanges") {
			called := Text(secondary, "rangeName")
			if Text(of, "networkConfig.subnetwork") == name && rangeOf(body, called) != Text(secondary, "ipCidrRange") {
				return refuse(400, "resourceInUseByAnotherResource", "The subnetwork resource '%s' is already being used by '%s'", name, cluster)
			}
		}
	}
	return nil
}

// checkRange refuses a range that is none or overlaps with one of a subnetwork's, in the words of a public
// report (terraform-google-modules/terraform-google-network, issue 20).
func checkRange(field, cidr, subnetwork string, taken []string) error {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return refuse(400, "invalid", "Invalid value for field '%s': '%s'.", field, cidr)
	}
	for _, other := range taken {
		if other, err := netip.ParsePrefix(other); err == nil && other.Overlaps(prefix) {
			return refuse(400, "invalid", "Invalid value for field '%s': '%s'. Invalid IPCidrRange: "+
				"%s conflicts with existing subnetwork '%s' in region '%s'.",
				field, cidr, cidr, Segment(subnetwork), Element(subnetwork, "regions"))
		}
	}
	return nil
}

// rangesOf returns the ranges of a subnetwork, its primary one first.
func rangesOf(subnetwork Body) []string {
	ranges := []string{Text(subnetwork, "ipCidrRange")}
	for _, secondary := range Objects(subnetwork, "secondaryIpRanges") {
		ranges = append(ranges, Text(secondary, "ipCidrRange"))
	}
	return ranges
}

// rangeOf returns a secondary range of a subnetwork by its name, or "".
func rangeOf(subnetwork Body, name string) string {
	for _, secondary := range Objects(subnetwork, "secondaryIpRanges") {
		if Text(secondary, "rangeName") == name {
			return Text(secondary, "ipCidrRange")
		}
	}
	return ""
}

func completeRouter(_ *Cloud, name string, body, _ Body) error {
	compute(name, body)
	return nil
}

// natDefaults returns the defaults of the gateway with automatic addresses in a recorded router, which
// is from Config Connector's mock†.
func natDefaults(Body) Body {
	all := answers().Resources["compute.router.natAutomatic"]
	return Clone(beyond(Objects(all.Get, "nats")[0], Objects(all.Request, "nats")[0]))
}

// routerOf returns the router of a gateway, whose name in the provider is project/region/router/name.
func routerOf(nat string, _ Body) string {
	parts := strings.Split(nat, "/")
	return fmt.Sprintf("projects/%s/regions/%s/routers/%s", parts[0], parts[1], parts[2])
}

// completeDisk refuses a disk that is smaller than it was, or of no size of its type†.
func completeDisk(_ *Cloud, name string, body, old Body) error {
	compute(name, body)
	if size(body) < size(old) {
		return refuse(400, "invalid", "Invalid value for field 'sizeGb': '%d'. New disk size must be larger than current size.", size(body))
	}
	kind := cmp.Or(Segment(Text(body, "type")), "pd-standard")
	if least, most := gcp.DiskGB(kind, strings.Contains(name, "/regions/")); size(body) < least || size(body) > most {
		return refuse(400, "invalid", "Invalid value for field 'resource.sizeGb': '%d'. The size of a %s disk must be between %d and %d GB.",
			size(body), kind, least, most)
	}
	body["sizeGb"] = fmt.Sprint(size(body))
	location, _, _ := strings.Cut(name, "/disks/")
	body["type"] = computeURL + location + "/diskTypes/" + kind
	zones := []any{}
	for _, zone := range Texts(body, "replicaZones") {
		zones = append(zones, computeURL+"projects/"+Element(name, "projects")+"/zones/"+Segment(zone))
	}
	if len(zones) > 0 {
		body["replicaZones"] = zones
	}
	// The key in use is a version of the key that the request names.
	const key = "diskEncryptionKey.kmsKeyName"
	if value := Text(body, key); value != "" && !strings.Contains(value, "/cryptoKeyVersions/") {
		Set(body, key, value+"/cryptoKeyVersions/1") // †
	}
	return nil
}

func size(body Body) int {
	value, _ := Lookup(body, "sizeGb")
	var gb int
	_, _ = fmt.Sscan(fmt.Sprint(value), &gb)
	return gb
}
