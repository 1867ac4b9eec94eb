package google

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

func clusterRules() rules {
	return rules{
		defaults:  clusterDefaults,
		check:     checkLocation,
		create:    createCluster,
		normalize: normalizeCluster,
		deleted:   deletePools,
		gke:       true,
	}
}

// clusterDefaults returns the defaults of the recorded regional cluster, without its first
// pool, locations and ranges.
func clusterDefaults(string, Body) Body {
	body := serverSet("container.cluster.regional")
	for _, own := range []string{"nodePools", "nodeConfig", "instanceGroupUrls", "locations", "location", "zone", "currentNodeCount"} {
		delete(body, own)
	}
	for _, of := range []string{"cluster", "services"} {
		remove(body, "ipAllocationPolicy."+of+"Ipv4CidrBlock")
	}
	// What the recorded request asked for in part, a cluster has all the same.
	for _, path := range []string{"autopilot", "binaryAuthorization", "legacyAbac", "networkConfig"} {
		fill(body, path, Body{})
	}
	Set(body, "shieldedNodes.enabled", true)
	return body
}

// createCluster applies the rule of GKE for a creation only: the persistent disk driver is
// on even if it is asked for off, until an update turns it off.
func createCluster(c *Cloud, _ string, body Body) error {
	Set(body, "addonsConfig.gcePersistentDiskCsiDriverConfig.enabled", true)
	if c.settings.L4ILBSubsetting {
		fill(body, "networkConfig.enableL4ilbSubsetting", true)
	}
	return nil
}

func normalizeCluster(c *Cloud, name string, body Body) error {
	location := element(name, "locations")
	body["name"] = segment(name)
	body["location"], body["zone"] = location, location
	fill(body, "locations", zonesOf(location))
	body["selfLink"] = "https://container.googleapis.com/v1beta1/" + selfPath(name)
	fill(body, "createTime", "2026-08-01T00:00:00+00:00")
	clusterVersion(body)
	clusterNetwork(c, name, body)
	clusterEndpoints(name, body)
	clusterEncryption(body)
	clusterMonitoring(body)
	clusterMaintenance(body)
	if pool := text(body, "workloadIdentityConfig.workloadPool"); pool != "" {
		Set(body, "workloadIdentityConfig.identityNamespace", pool)
		Set(body, "workloadIdentityConfig.identityProvider", "https://container.googleapis.com/v1/"+name)
	}
	return subnetworkOfCluster(c, body)
}

// selfPath returns a path in which a zonal cluster is under zones.
func selfPath(name string) string {
	location := element(name, "locations")
	if isZone(location) {
		return strings.Replace(name, "/locations/", "/zones/", 1)
	}
	return name
}

func isZone(location string) bool { return strings.Count(location, "-") == 2 }

// zonesOf returns a zone itself, and three zones of a region. Which, and in what
// order, differs from region to region.
func zonesOf(location string) []any {
	if isZone(location) {
		return []any{location}
	}
	return []any{location + "-b", location + "-c", location + "-a"}
}

// clusterVersion completes a version that was asked for in part.
func clusterVersion(body Body) {
	version := text(body, "initialClusterVersion")
	if version != "" && !strings.Contains(version, "-gke.") {
		full := text(Answers()["container.cluster.zonal"].Get, "currentMasterVersion")
		if !strings.HasPrefix(full, version) {
			full = version + ".0-gke.1000000" // †
		}
		for _, field := range []string{"initialClusterVersion", "currentMasterVersion", "currentNodeVersion"} {
			body[field] = full
		}
	}
}

func clusterNetwork(c *Cloud, name string, body Body) {
	network, subnetwork := networksOfCluster(name, body)
	body["network"], body["subnetwork"] = segment(network), segment(subnetwork)
	fill(body, "networkConfig.network", network)
	fill(body, "networkConfig.subnetwork", subnetwork)
	// Never recorded†: an answer that leaves it out would replace the cluster.
	if text(body, "networkConfig.datapathProvider") == "LEGACY_DATAPATH" {
		remove(body, "networkConfig.datapathProvider")
	}
	policy := object(body, "ipAllocationPolicy")
	policy["useIpAliases"] = true
	fill(policy, "stackType", "IPV4")
	fill(policy, "clusterSecondaryRangeName", "gke-"+segment(name)+"-pods-"+hash(name))
	pods, services := rangesOf(c, body)
	fill(policy, "clusterIpv4CidrBlock", pods)
	fill(policy, "servicesIpv4CidrBlock", services)
	for _, of := range []string{"cluster", "services"} {
		block := text(policy, of+"Ipv4CidrBlock")
		if strings.HasPrefix(block, "/") {
			block = "10.112.0.0" + block
		}
		policy[of+"Ipv4CidrBlock"], policy[of+"Ipv4Cidr"] = block, block
		body[of+"Ipv4Cidr"] = block
	}
}

// rangesOf returns the ranges of the subnetwork that a cluster names, or the ranges of the
// recorded cluster.
func rangesOf(c *Cloud, body Body) (pods, services string) {
	policy := Answers()["container.cluster.regional"].Get
	pods, services = text(policy, "ipAllocationPolicy.clusterIpv4CidrBlock"), text(policy, "ipAllocationPolicy.servicesIpv4CidrBlock")
	subnetwork, err := c.kept.Read("compute.subnetwork", text(body, "networkConfig.subnetwork"))
	if err != nil || subnetwork == nil {
		return pods, services
	}
	pods = cmp.Or(rangeOf(subnetwork, text(body, "ipAllocationPolicy.clusterSecondaryRangeName")), pods)
	services = cmp.Or(rangeOf(subnetwork, text(body, "ipAllocationPolicy.servicesSecondaryRangeName")), services)
	return pods, services
}

// clusterEndpoints completes the two ways to say who reaches the control plane.
func clusterEndpoints(name string, body Body) {
	private := truth(body, "privateClusterConfig.enablePrivateNodes")
	fill(body, "privateClusterConfig", Body{})
	addresses := object(body, "privateClusterConfig")
	addresses["privateEndpoint"], addresses["publicEndpoint"] = "10.0.0.2", "34.0.0.2"
	endpoint := addresses["publicEndpoint"]
	if truth(addresses, "enablePrivateEndpoint") {
		endpoint = addresses["privateEndpoint"]
	}
	fill(body, "endpoint", endpoint)
	if !has(body, "masterAuthorizedNetworksConfig.enabled") {
		asked := object(body, "masterAuthorizedNetworksConfig")
		if len(asked) == 0 || !has(asked, "cidrBlocks") {
			body["masterAuthorizedNetworksConfig"] = Body{"gcpPublicCidrsAccessEnabled": true}
			if private {
				body["masterAuthorizedNetworksConfig"] = Body{"privateEndpointEnforcementEnabled": true}
			}
		}
	}
	ip := Body{
		"enabled": true, "enablePublicEndpoint": !truth(addresses, "enablePrivateEndpoint"),
		"privateEndpoint": addresses["privateEndpoint"], "publicEndpoint": addresses["publicEndpoint"],
		"authorizedNetworksConfig": Clone(object(body, "masterAuthorizedNetworksConfig")),
	}
	if truth(addresses, "enablePrivateEndpoint") {
		delete(ip, "publicEndpoint")
	}
	if subnetwork := text(addresses, "privateEndpointSubnetwork"); subnetwork != "" {
		ip["privateEndpointSubnetwork"] = subnetwork
	} else if has(addresses, "masterIpv4CidrBlock") {
		ip["privateEndpointSubnetwork"] = fmt.Sprintf("projects/%s/regions/%s/subnetworks/gke-%s-%s-pe-subnet",
			element(name, "projects"), location(name), segment(name), hash(name))
	}
	Set(body, "controlPlaneEndpointsConfig.ipEndpointsConfig", ip)
	// Answered although they are false.
	for _, closed := range []string{"allowExternalTraffic", "enableK8sTokensViaDns"} {
		fill(body, "controlPlaneEndpointsConfig.dnsEndpointConfig."+closed, false)
	}
	Set(body, "controlPlaneEndpointsConfig.dnsEndpointConfig.endpoint",
		fmt.Sprintf("gke-%s-%s.%s.gke.goog", hash(name), ProjectNumber, element(name, "locations")))
}

// location returns the region of a name with a zone or a region in it.
func location(name string) string {
	location := element(name, "locations")
	if isZone(location) {
		return location[:strings.LastIndex(location, "-")]
	}
	return location
}

// clusterEncryption renames the state ENCRYPTED of a request, as GKE does, to the name of the newer
// kind of encryption.
func clusterEncryption(body Body) {
	switch text(body, "databaseEncryption.state") {
	case "ENCRYPTED", "ALL_OBJECTS_ENCRYPTION_ENABLED":
		answer := Clone(Answers()["container.cluster.databaseEncryption.encrypted"].Get)
		Set(answer, "databaseEncryption.keyName", text(body, "databaseEncryption.keyName"))
		body["databaseEncryption"] = answer["databaseEncryption"]
	case "DECRYPTED":
		encryption := object(body, "databaseEncryption")
		encryption["currentState"] = "CURRENT_STATE_DECRYPTED"
		if key := text(encryption, "keyName"); key != "" {
			encryption["decryptionKeys"] = []any{key}
			delete(encryption, "keyName")
		}
	}
}

// components are the values of MonitoringComponentConfig.Component in the order of
// the enumeration: GKE answers in it, whatever the order of the request. The three
// of the control plane are not in the recorded default.
var components = []string{"SYSTEM_COMPONENTS", "WORKLOADS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER"}

func clusterMonitoring(body Body) {
	order := slices.Clone(components)
	for _, component := range list(Answers()["container.cluster.regional"].Get, "monitoringConfig.componentConfig.enableComponents") {
		order = append(order, component.(string))
	}
	enabled := slices.Clone(list(body, "monitoringConfig.componentConfig.enableComponents"))
	slices.SortStableFunc(enabled, func(a, b any) int {
		return slices.Index(order, fmt.Sprint(a)) - slices.Index(order, fmt.Sprint(b))
	})
	if enabled != nil {
		Set(body, "monitoringConfig.componentConfig.enableComponents", enabled)
	}
	fill(body, "monitoringConfig.advancedDatapathObservabilityConfig", Body{})
	fill(body, "monitoringConfig.managedPrometheusConfig", Body{})
}

// clusterMaintenance says how long a daily window is. The widest scope of an
// exclusion is the enumeration's first value, which is left out. A window with
// nothing in it is dropped.
func clusterMaintenance(body Body) {
	window := object(body, "maintenancePolicy.window")
	if len(window) == 0 {
		remove(body, "maintenancePolicy.window")
	}
	if has(window, "dailyMaintenanceWindow") {
		Set(window, "dailyMaintenanceWindow.duration", "PT4H0M0S")
	}
	for _, exclusion := range object(window, "maintenanceExclusions") {
		if text(exclusion.(Body), "maintenanceExclusionOptions.scope") == "NO_UPGRADES" {
			Set(exclusion.(Body), "maintenanceExclusionOptions", Body{})
		}
	}
	fill(body, "maintenancePolicy.resourceVersion", hash(text(body, "selfLink")))
}

// subnetworkOfCluster turns on what GKE turns on in a cluster's subnetwork.
func subnetworkOfCluster(c *Cloud, body Body) error {
	name := text(body, "networkConfig.subnetwork")
	subnetwork, err := c.kept.Read("compute.subnetwork", name)
	if err != nil || subnetwork == nil {
		return err
	}
	subnetwork["privateIpGoogleAccess"] = true
	return c.kept.Write("compute.subnetwork", name, subnetwork)
}

// deletePools deletes the remaining pools of a cluster with the cluster.
func deletePools(c *Cloud, name string, _ Body) error {
	return c.eraseParts("container.nodePool", func(pool string) bool { return clusterOf(pool) == name })
}

// hash replaces the random parts of names.
func hash(name string) string {
	sum := fnv.New32a()
	sum.Write([]byte(name))
	return strconv.FormatUint(uint64(sum.Sum32()), 16)
}
