package google

import (
	"fmt"
	"net/netip"
	"strings"

	"persia/sandbox/gcp/google/merge"
)

const computeURL = "https://www.googleapis.com/compute/v1/"

// urls makes full URLs of the links of a body, as Compute Engine answers them.
func urls(body Body, fields ...string) {
	for _, field := range fields {
		if link := text(body, field); strings.HasPrefix(link, "projects/") {
			Set(body, field, computeURL+link)
		}
	}
}

func compute(name string, body Body) {
	body["name"] = segment(name)
	body["selfLink"] = computeURL + name
	fill(body, "creationTimestamp", "2026-08-01T00:00:00.000-07:00")
	project := "projects/" + element(name, "projects")
	for field, collection := range map[string]string{"region": "regions", "zone": "zones"} {
		if location := element(name, collection); location != "" {
			body[field] = fmt.Sprintf("%s%s/%s/%s", computeURL, project, collection, location)
		}
	}
}

func normalizeNetwork(_ *Cloud, name string, body Body) error {
	compute(name, body)
	body["selfLinkWithId"] = text(body, "selfLink")
	fill(body, "routingConfig.routingMode", "REGIONAL")
	return nil
}

func normalizeSubnetwork(_ *Cloud, name string, body Body) error {
	compute(name, body)
	urls(body, "network")
	cidr, err := netip.ParsePrefix(text(body, "ipCidrRange"))
	if err != nil {
		return refuse(400, "invalid", "Invalid value for field 'resource.ipCidrRange': '%s'.", text(body, "ipCidrRange"))
	}
	body["gatewayAddress"] = cidr.Masked().Addr().Next().String()
	fill(body, "fingerprint", hash(name))
	return nil
}

// checkSubnetwork refuses a subnetwork of no network, and to change or take away a
// secondary range that a cluster uses†.
func checkSubnetwork(c *Cloud, name string, body Body) error {
	if err := networkExists(c, name, body); err != nil {
		return err
	}
	existing, err := c.kept.Read("compute.subnetwork", name)
	if err != nil || existing == nil {
		return err
	}
	kept := map[string]bool{}
	for _, secondary := range list(body, "secondaryIpRanges") {
		kept[fmt.Sprint(secondary)] = true
	}
	for _, secondary := range list(existing, "secondaryIpRanges") {
		if kept[fmt.Sprint(secondary)] {
			continue
		}
		cluster, err := subnetworkUser(c, name)
		if err != nil {
			return err
		}
		if cluster != "" {
			return refuse(400, "resourceInUseByAnotherResource", "The subnetwork resource '%s' is already being used by '%s'", name, cluster)
		}
	}
	return nil
}

func normalizeRouter(_ *Cloud, name string, body Body) error {
	compute(name, body)
	urls(body, "network")
	return nil
}

// natDefaults returns the defaults of the one gateway in a recorded router. The router with
// manual addresses is real; the one with automatic addresses is from Config Connector's mock†.
func natDefaults(_ string, request Body) Body {
	answer, withoutAsked := "compute.router.nat", "natIps"
	if text(request, "natIpAllocateOption") == "AUTO_ONLY" {
		answer, withoutAsked = "compute.router.natAutomatic", ""
	}
	all := Clone(Answers()[answer])
	gateway := list(all.Get, "nats")[0].(Body)
	asked := list(all.Request, "nats")[0].(Body)
	body := merge.Beyond(gateway, asked)
	delete(body, withoutAsked)
	return withoutPlaceholders(body)
}

func routerExists(c *Cloud, name string, _ Body) error {
	router := routerOf(name)
	body, err := c.kept.Read("compute.router", router)
	if err == nil && body == nil {
		err = refuse(404, "notFound", "The resource '%s' was not found", router)
	}
	return err
}

// routerOf returns the router of a gateway, whose name in the provider is
// project/region/router/name.
func routerOf(nat string) string {
	parts := strings.Split(nat, "/")
	return fmt.Sprintf("projects/%s/regions/%s/routers/%s", parts[0], parts[1], parts[2])
}

// deleteNATs deletes the gateways that are part of a router.
func deleteNATs(c *Cloud, name string, _ Body) error {
	return c.eraseParts("compute.router.nat", func(gateway string) bool { return routerOf(gateway) == name })
}

// networkUser returns a resource that uses a network.
func networkUser(c *Cloud, name string) (string, error) {
	for _, kind := range []string{"compute.subnetwork", "compute.router"} {
		if found, err := user(c, kind, name, "network"); err != nil || found != "" {
			return found, err
		}
	}
	instances, err := c.kept.All("file.instance")
	for instance, body := range instances {
		for _, of := range list(body, "networks") {
			if inNetwork(instance, text(of.(Body), "network"), name) {
				return instance, nil
			}
		}
	}
	return "", err
}

// inNetwork reports whether an instance is in a network. A short name is a network of the
// instance's own project.
func inNetwork(instance, network, name string) bool {
	return strings.HasSuffix(network, name) ||
		fmt.Sprintf("projects/%s/global/networks/%s", element(instance, "projects"), network) == name
}

func subnetworkUser(c *Cloud, name string) (string, error) {
	return user(c, "container.cluster", name, "networkConfig.subnetwork")
}

// checkDisk refuses a disk that is smaller than it is.
func checkDisk(c *Cloud, name string, body Body) error {
	for _, kind := range []string{"compute.disk", "compute.regionDisk"} {
		old, err := c.kept.Read(kind, name)
		if err != nil {
			return err
		}
		if old != nil && size(body) < size(old) {
			return refuse(400, "invalid", "Invalid value for field 'sizeGb': '%d'. New disk size must be larger than current size.", size(body))
		}
	}
	return nil
}

func size(body Body) int {
	value, _ := Lookup(body, "sizeGb")
	var gb int
	fmt.Sscan(fmt.Sprint(value), &gb)
	return gb
}

func normalizeDisk(_ *Cloud, name string, body Body) error {
	compute(name, body)
	body["sizeGb"] = fmt.Sprint(size(body))
	location, _, _ := strings.Cut(name, "/disks/")
	body["type"] = computeURL + location + "/diskTypes/" + segment(text(body, "type"))
	zones := []any{}
	for _, zone := range list(body, "replicaZones") {
		zones = append(zones, computeURL+"projects/"+element(name, "projects")+"/zones/"+segment(zone.(string)))
	}
	if len(zones) > 0 {
		body["replicaZones"] = zones
	}
	// The key in use is a version of the key that the request names.
	const key = "diskEncryptionKey.kmsKeyName"
	if value := text(body, key); value != "" && !strings.Contains(value, "/cryptoKeyVersions/") {
		Set(body, key, value+"/cryptoKeyVersions/1") // †
	}
	return nil
}
