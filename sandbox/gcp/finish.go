package gcp

import (
	"slices"
	"strings"

	"persia/sandbox/gcp/google"
)

// completions complete what generic conversion makes of a body.
var completions = map[string]func(object, body map[string]any){
	"google_container_cluster":   finishCluster,
	"google_container_node_pool": finishPool,
	"google_compute_disk":        finishDisk,
	"google_compute_region_disk": finishDisk,
}

// preparations complete a request.
var preparations = map[string]func(body google.Body){
	"google_container_cluster":   prepareCluster,
	"google_container_node_pool": preparePool,
}

// finishCluster completes the provider's object of a cluster.
func finishCluster(object, body map[string]any) {
	zones, _ := object["node_locations"].([]any)
	object["node_locations"] = slices.DeleteFunc(slices.Clone(zones), func(zone any) bool { return zone == object["location"] })
	// The provider keeps the paths, and a cluster has them only in networkConfig.
	network := google.Object(body, "networkConfig")
	object["network"], object["subnetwork"] = network["network"], network["subnetwork"]
	for _, block := range google.Objects(object, "cluster_autoscaling") {
		block["enabled"] = block["enabled"] == true
	}
	for _, policy := range google.Objects(object, "maintenance_policy") {
		policy["maintenance_exclusion"] = exclusions(google.Object(body, "maintenancePolicy.window.maintenanceExclusions"))
	}
}

// exclusions returns a list of the API's map.
func exclusions(all google.Body) []any {
	list := []any{}
	for name, exclusion := range all {
		values, _ := exclusion.(google.Body)
		entry := map[string]any{"exclusion_name": name, "start_time": values["startTime"], "end_time": values["endTime"]}
		if options, ok := values["maintenanceExclusionOptions"].(google.Body); ok {
			entry["exclusion_options"] = []any{map[string]any{"scope": options["scope"]}}
		}
		list = append(list, entry)
	}
	return list
}

// prepareCluster says that a block of authorized networks turns them on, and gives
// exclusions the names that the API keeps them by.
func prepareCluster(body google.Body) {
	if networks := google.Object(body, "masterAuthorizedNetworksConfig"); networks != nil {
		networks["enabled"] = true
	}
	window := google.Object(body, "maintenancePolicy.window")
	named := map[string]any{}
	for _, exclusion := range google.Objects(window, "exclusions") {
		named[google.Text(exclusion, "exclusionName")] = exclusion
		delete(exclusion, "exclusionName")
	}
	delete(window, "exclusions")
	if len(named) > 0 {
		window["maintenanceExclusions"] = named
	}
}

// finishPool completes the provider's object of a node pool.
func finishPool(object, body map[string]any) {
	groups, managers := []any{}, object["instance_group_urls"]
	for _, manager := range google.Texts(object, "instance_group_urls") {
		groups = append(groups, strings.Replace(manager, "/instanceGroupManagers/", "/instanceGroups/", 1))
	}
	object["instance_group_urls"], object["managed_instance_group_urls"] = groups, managers
	for _, node := range google.Objects(object, "node_config") {
		// The provider answers only the pool's own taints as taint.
		own, _ := node["taint"].([]any)
		added, _ := google.Lookup(body, google.GPUTaints)
		more, _ := added.([]any)
		node["effective_taints"] = slices.Concat(own, more)
	}
}

// preparePool adds the provider's own fields to a request for a pool: a pool with bounds is
// autoscaled, and a new pool has its number of nodes.
func preparePool(body google.Body) {
	if autoscaling := google.Object(body, "autoscaling"); autoscaling != nil {
		autoscaling["enabled"] = true
	}
	if count, ok := body["nodeCount"]; ok {
		body["initialNodeCount"] = count
	}
}

// finishDisk leaves out the version of the key, as the provider does.
func finishDisk(object, _ map[string]any) {
	for _, key := range google.Objects(object, "disk_encryption_key") {
		for _, field := range []string{"kms_key_self_link", "kms_key_name"} {
			if name, ok := key[field].(string); ok {
				key[field], _, _ = strings.Cut(name, "/cryptoKeyVersions/")
			}
		}
	}
}
