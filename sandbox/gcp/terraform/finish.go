package terraform

import (
	"fmt"
	"slices"
	"strings"

	"persia/sandbox/gcp/google"
)

// finishCluster completes the provider's object of a cluster.
func finishCluster(object, body map[string]any, id map[string]string) {
	object["location"] = id["location"]
	object["networking_mode"] = "VPC_NATIVE"
	object["node_locations"] = withoutZone(object["node_locations"], id["location"])
	// The provider keeps the paths, and a cluster has them only in networkConfig.
	if network, ok := body["networkConfig"].(map[string]any); ok {
		object["network"], object["subnetwork"] = network["network"], network["subnetwork"]
	}
	// Without automatic provisioning, its settings are not read.
	for _, block := range blocks(object["cluster_autoscaling"]) {
		if block["enabled"] != true {
			block["enabled"] = false
			block["auto_provisioning_defaults"], block["resource_limits"] = nil, nil
		}
	}
	for _, policy := range blocks(object["maintenance_policy"]) {
		policy["maintenance_exclusion"] = exclusions(body)
	}
}

// withoutZone returns the zones of a cluster other than its own.
func withoutZone(zones any, location string) []any {
	return slices.DeleteFunc(slices.Clone(list(zones)), func(zone any) bool { return zone == location })
}

func list(value any) []any {
	all, _ := value.([]any)
	return all
}

func blocks(value any) []map[string]any {
	var all []map[string]any
	for _, element := range list(value) {
		if block, ok := element.(map[string]any); ok {
			all = append(all, block)
		}
	}
	return all
}

// exclusions returns a list of the API's map.
func exclusions(body map[string]any) []any {
	policy, _ := body["maintenancePolicy"].(map[string]any)
	window, _ := policy["window"].(map[string]any)
	all, _ := window["maintenanceExclusions"].(map[string]any)
	exclusions := []any{}
	for name, exclusion := range all {
		values, _ := exclusion.(map[string]any)
		options, _ := values["maintenanceExclusionOptions"].(map[string]any)
		entry := map[string]any{"exclusion_name": name, "start_time": values["startTime"], "end_time": values["endTime"]}
		if options != nil {
			entry["exclusion_options"] = []any{map[string]any{"scope": options["scope"]}}
		}
		exclusions = append(exclusions, entry)
	}
	return exclusions
}

// finishPool completes the provider's object of a node pool.
func finishPool(object, body map[string]any, id map[string]string) {
	object["location"], object["cluster"] = id["location"], id["cluster"]
	groups, managers := []any{}, object["instance_group_urls"]
	for _, manager := range list(managers) {
		groups = append(groups, strings.Replace(manager.(string), "/instanceGroupManagers/", "/instanceGroups/", 1))
	}
	object["instance_group_urls"], object["managed_instance_group_urls"] = groups, managers
	for _, node := range blocks(object["node_config"]) {
		// The provider answers only the pool's own taints as taint.
		added, _ := google.Lookup(body, google.GPUTaints)
		node["effective_taints"] = slices.Concat(list(node["taint"]), list(added))
	}
}

// prepareSubnetwork turns the log on if the plan says anything of it, and else off.
func prepareSubnetwork(body map[string]any) {
	log, ok := body["logConfig"].(map[string]any)
	if !ok {
		log = map[string]any{}
		body["logConfig"] = log
	}
	log["enable"] = ok
}

// finishSubnetwork leaves out a log that is off.
func finishSubnetwork(object, body map[string]any, _ map[string]string) {
	if log, ok := body["logConfig"].(map[string]any); ok && log["enable"] != true {
		object["log_config"] = nil
	}
}

// finishBucket completes the provider's object of a bucket.
func finishBucket(object, _ map[string]any, id map[string]string) {
	object["url"] = "gs://" + id["name"]
}

// finishAccount completes the provider's object of a service account.
func finishAccount(object, _ map[string]any, id map[string]string) {
	email := id["account_id"] + "@" + id["project"] + ".iam.gserviceaccount.com"
	object["account_id"], object["email"] = id["account_id"], email
	object["member"] = "serviceAccount:" + email
}

// finishIdentity completes the provider's object of a service identity.
func finishIdentity(object, body map[string]any, _ map[string]string) {
	object["member"] = "serviceAccount:" + fmt.Sprint(body["email"])
}

// prepareCluster says that a block of authorized networks turns them on, and gives
// exclusions the names that the API keeps them by.
func prepareCluster(body map[string]any) {
	if networks, ok := body["masterAuthorizedNetworksConfig"].(map[string]any); ok {
		networks["enabled"] = true
	}
	policy, _ := body["maintenancePolicy"].(map[string]any)
	window, _ := policy["window"].(map[string]any)
	if window == nil {
		return
	}
	named := map[string]any{}
	for _, exclusion := range blocks(window["exclusions"]) {
		name, _ := exclusion["exclusionName"].(string)
		delete(exclusion, "exclusionName")
		named[name] = exclusion
	}
	delete(window, "exclusions")
	if len(named) > 0 {
		window["maintenanceExclusions"] = named
	}
}

// preparePool adds the provider's own fields to a request for a pool: a pool with bounds is
// autoscaled, and a new pool has its number of nodes.
func preparePool(body map[string]any) {
	if autoscaling, ok := body["autoscaling"].(map[string]any); ok {
		autoscaling["enabled"] = true
	}
	if count, ok := body["nodeCount"]; ok {
		body["initialNodeCount"] = count
	}
}

// finishDisk leaves out the version of the key, as the provider does.
func finishDisk(object, _ map[string]any, _ map[string]string) {
	for _, key := range blocks(object["disk_encryption_key"]) {
		for _, field := range []string{"kms_key_self_link", "kms_key_name"} {
			if name, ok := key[field].(string); ok {
				key[field], _, _ = strings.Cut(name, "/cryptoKeyVersions/")
			}
		}
	}
}
