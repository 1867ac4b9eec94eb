package google

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clusterDefaults returns the defaults of the recorded regional cluster, without its first
// pool, locations, ranges and endpoints.
func clusterDefaults(Body) Body {
	body := serverSet("container.cluster.regional")
	remove(body, "nodePools", "nodeConfig", "instanceGroupUrls", "locations", "location", "zone", "currentNodeCount",
		"controlPlaneEndpointsConfig", "ipAllocationPolicy.clusterIpv4CidrBlock", "ipAllocationPolicy.servicesIpv4CidrBlock")
	// What the recorded request asked for in part, a cluster has all the same.
	for _, path := range []string{"autopilot", "binaryAuthorization", "legacyAbac", "networkConfig"} {
		fill(body, path, Body{})
	}
	Set(body, "shieldedNodes.enabled", true)
	return body
}

func completeCluster(c *Cloud, name string, body, old Body) error {
	if err := checkCluster(body); err != nil {
		return err
	}
	if old == nil {
		// The persistent disk driver is on even if it is asked for off, until an update turns it off.
		Set(body, "addonsConfig.gcePersistentDiskCsiDriverConfig.enabled", true)
		// GKE turns it on since 1.36, even if it is asked for off.
		fill(body, "networkConfig.enableL4ilbSubsetting", true)
	}
	location := Element(name, "locations")
	body["name"] = Segment(name)
	body["location"], body["zone"] = location, location
	fill(body, "locations", zonesOf(location))
	body["selfLink"] = "https://container.googleapis.com/v1beta1/" + name
	fill(body, "createTime", "2026-08-01T00:00:00+00:00")
	if err := clusterNetwork(c, name, body, old); err != nil {
		return err
	}
	clusterEndpoints(body)
	clusterEncryption(body)
	clusterMonitoring(body)
	clusterMaintenance(body)
	if pool := Text(body, "workloadIdentityConfig.workloadPool"); pool != "" {
		Set(body, "workloadIdentityConfig.identityNamespace", pool)
		Set(body, "workloadIdentityConfig.identityProvider", "https://container.googleapis.com/v1/"+name)
	}
	return nil
}

// checkCluster refuses settings that exclude each other.
func checkCluster(body Body) error {
	for _, of := range []string{"logging", "monitoring"} {
		components := Texts(body, of+"Config.componentConfig.enableComponents")
		if len(components) > 0 && !slices.Contains(components, "SYSTEM_COMPONENTS") {
			return refuse(400, "badRequest", "SYSTEM_COMPONENTS must be enabled for other components of %s.", of)
		}
	}
	for name, exclusion := range Object(body, "maintenancePolicy.window.maintenanceExclusions") {
		start, startErr := time.Parse(time.RFC3339, Text(exclusion.(Body), "startTime"))
		end, endErr := time.Parse(time.RFC3339, Text(exclusion.(Body), "endTime"))
		if startErr != nil || endErr != nil || end.Sub(start) > 180*24*time.Hour {
			return refuse(400, "badRequest", "Maintenance exclusion %q must not be longer than 180 days.", name)
		}
	}
	return nil
}

// clusterNetwork refuses a new cluster in another region than its subnetwork's, or with ranges that the subnetwork
// lacks†, in the words of public reports. GKE turns private access to Google's APIs on in the subnetwork.
func clusterNetwork(c *Cloud, name string, body, old Body) error {
	if !has(body, "networkConfig.network") {
		network, subnetwork := cmp.Or(Text(body, "network"), defaultNetwork), cmp.Or(Text(body, "subnetwork"), defaultNetwork)
		Set(body, "networkConfig.network", networkOf(name, network))
		if !strings.Contains(subnetwork, "/") {
			subnetwork = "projects/" + Element(name, "projects") + "/regions/" + Element(name, "locations") + "/subnetworks/" + subnetwork
		}
		Set(body, "networkConfig.subnetwork", subnetwork)
	}
	called := Text(body, "networkConfig.subnetwork")
	body["network"], body["subnetwork"] = Segment(Text(body, "networkConfig.network")), Segment(called)
	subnetwork, err := c.Get("compute.subnetwork", called)
	if err != nil {
		return err
	}
	if region := Element(called, "regions"); !strings.HasPrefix(Element(name, "locations"), region) {
		return refuse(400, "badRequest", "Subnet %q does not exist in specified region %q.", called, Element(name, "locations"))
	}
	// GKE makes a subnetwork for the control plane.
	if control := Text(body, "privateClusterConfig.masterIpv4CidrBlock"); control != "" && subnetwork != nil {
		if err := checkRange("resource.ipCidrRange", control, called, rangesOf(subnetwork)); err != nil {
			return err
		}
	}
	Set(body, "ipAllocationPolicy.useIpAliases", true)
	policy := Object(body, "ipAllocationPolicy")
	fill(policy, "stackType", "IPV4")
	recorded := Object(recorded("container.cluster.regional"), "ipAllocationPolicy")
	for _, of := range []struct{ field, called string }{{"cluster", "Pod"}, {"services", "Services"}} {
		secondary := Text(policy, of.field+"SecondaryRangeName")
		if old == nil && secondary != "" && rangeOf(subnetwork, secondary) == "" {
			return refuse(400, "badRequest", "%s secondary range %q not found in network %q, subnetwork %q.",
				of.called, secondary, computeURL+Text(body, "networkConfig.network"), Segment(called))
		}
		block := of.field + "Ipv4CidrBlock"
		fill(policy, block, cmp.Or(rangeOf(subnetwork, secondary), Text(recorded, block)))
		policy[of.field+"Ipv4Cidr"], body[of.field+"Ipv4Cidr"] = policy[block], policy[block]
	}
	fill(policy, "clusterSecondaryRangeName", "gke-"+Segment(name)+"-pods-"+hash(name))
	if subnetwork == nil {
		return nil
	}
	subnetwork["privateIpGoogleAccess"] = true
	return c.write("compute.subnetwork", called, subnetwork)
}

// clusterEndpoints says who reaches the control plane, and where.
func clusterEndpoints(body Body) {
	fill(body, "privateClusterConfig", Body{})
	addresses := Object(body, "privateClusterConfig")
	addresses["privateEndpoint"], addresses["publicEndpoint"] = "10.0.0.2", "34.0.0.2"
	endpoint := addresses["publicEndpoint"]
	if Truth(addresses, "enablePrivateEndpoint") {
		endpoint = addresses["privateEndpoint"]
	}
	fill(body, "endpoint", endpoint)
}

// clusterEncryption renames the state ENCRYPTED of a request, as GKE does, to the name of the newer kind of encryption.
func clusterEncryption(body Body) {
	switch Text(body, "databaseEncryption.state") {
	case "ENCRYPTED", "ALL_OBJECTS_ENCRYPTION_ENABLED":
		answer := Clone(Object(recorded("container.cluster.databaseEncryption.encrypted"), "databaseEncryption"))
		answer["keyName"] = Text(body, "databaseEncryption.keyName")
		body["databaseEncryption"] = answer
	case "DECRYPTED":
		encryption := Object(body, "databaseEncryption")
		encryption["currentState"] = "CURRENT_STATE_DECRYPTED"
		if key := Text(encryption, "keyName"); key != "" {
			encryption["decryptionKeys"] = []any{key}
			delete(encryption, "keyName")
		}
	}
}

// clusterMonitoring puts the components into the order of the values of MonitoringComponentConfig.Component, as GKE
// does, whatever the order of the request. Those of the control plane are not in the recorded default.
func clusterMonitoring(body Body) {
	const components = "monitoringConfig.componentConfig.enableComponents"
	order := slices.Concat([]string{"SYSTEM_COMPONENTS", "WORKLOADS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER"},
		Texts(recorded("container.cluster.regional"), components))
	if enabled := Texts(body, components); enabled != nil {
		slices.SortStableFunc(enabled, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
		Set(body, components, Clone[any](enabled))
	}
	fill(body, "monitoringConfig.advancedDatapathObservabilityConfig", Body{})
	fill(body, "monitoringConfig.managedPrometheusConfig", Body{})
}

// clusterMaintenance says how long a daily window is. A window with nothing in it is dropped.
func clusterMaintenance(body Body) {
	window := Object(body, "maintenancePolicy.window")
	if len(window) == 0 {
		remove(body, "maintenancePolicy.window")
	}
	if has(window, "dailyMaintenanceWindow") {
		Set(window, "dailyMaintenanceWindow.duration", "PT4H0M0S")
	}
	fill(body, "maintenancePolicy.resourceVersion", hash(Text(body, "selfLink")))
}

// hash replaces the random parts of names.
func hash(name string) string {
	sum := fnv.New32a()
	sum.Write([]byte(name))
	return strconv.FormatUint(uint64(sum.Sum32()), 16)
}
