package google

import (
	"fmt"
	"strings"
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

func completeSubnetwork(_ *Cloud, name string, body, _ Body) error {
	compute(name, body)
	fill(body, "fingerprint", hash(name))
	return nil
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

// routerOf returns the router of a gateway, whose name in the provider is
// project/region/router/name.
func routerOf(nat string, _ Body) string {
	parts := strings.Split(nat, "/")
	return fmt.Sprintf("projects/%s/regions/%s/routers/%s", parts[0], parts[1], parts[2])
}

func completeDisk(_ *Cloud, name string, body, _ Body) error {
	compute(name, body)
	body["sizeGb"] = fmt.Sprint(body["sizeGb"])
	location, _, _ := strings.Cut(name, "/disks/")
	body["type"] = computeURL + location + "/diskTypes/" + Segment(Text(body, "type"))
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
