package terraform

import (
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// suppression returns the function that suppresses differences of a field, by the field's path in
// schema.json. A path inside another resource, such as a cluster's own node pools, takes the function
// of its longest listed suffix.
func suppression(path string) (schema.SchemaDiffSuppressFunc, bool) {
	for suffix := path; ; {
		if suppress, known := suppressions[suffix]; known {
			return suppress, true
		}
		_, rest, more := strings.Cut(suffix, ".")
		if !more {
			return nil, false
		}
		suffix = rest
	}
}

// suppressions are the suppressions of terraform-provider-google-beta 5.42.
var suppressions = map[string]schema.SchemaDiffSuppressFunc{
	"image_type":                           caseless,
	"cgroup_mode":                          unless("CGROUP_MODE_UNSPECIFIED"),
	"datapath_provider":                    unless("DATAPATH_PROVIDER_UNSPECIFIED"),
	"min_cpu_platform":                     unless("automatic"),
	"mode":                                 unless("MODE_UNSPECIFIED"),
	"vulnerability_mode":                   unless("VULNERABILITY_MODE_UNSPECIFIED"),
	"interface":                            always, // no longer has an effect
	"autoclass":                            autoclassOff,
	"website.main_page_suffix":             never,
	"website.not_found_page":               never,
	"node_config.labels":                   ownLabels,
	"node_config.oauth_scopes":             never, // only with scopes of the machine's own
	"guest_accelerator.type":               lastSegment,
	"network":                              lastSegment,
	"networks.network":                     lastSegment,
	"subnetwork":                           lastSegment,
	"subnetwork.name":                      lastSegment,
	"private_endpoint_subnetwork":          privateCluster,
	"private_cluster_config":               privateCluster,
	"enable_private_endpoint":              privateCluster,
	"enable_private_nodes":                 privateCluster,
	"router":                               lastSegment,
	"repository":                           lastSegment,
	"region":                               lastSegment,
	"zone":                                 lastSegment,
	"type":                                 lastSegment,
	"image":                                lastSegment,
	"snapshot":                             lastSegment,
	"source_disk":                          lastSegment,
	"storage_pool":                         lastSegment,
	"kms_key_self_link":                    withoutVersion,
	"async_primary_disk":                   never,
	"newer_than":                           duration,
	"older_than":                           duration,
	"format":                               caseless,
	"upstream_policies":                    never,
	"istio_config.auth":                    unless("AUTH_NONE"),
	"binary_authorization":                 binaryAuthorization,
	"dns_config":                           autopilot,
	"network_policy":                       never,
	"network_policy.provider":              never,
	"fleet":                                never,
	"secret_manager_config":                secretManager,
	"pod_security_policy_config":           podSecurity,
	"daily_maintenance_window.start_time":  never,
	"recurring_window.recurrence":          never,
	"cluster_ipv4_cidr_block":              netmask,
	"services_ipv4_cidr_block":             netmask,
	"auto_provisioning_defaults.disk_size": autopilot,
	"auto_provisioning_defaults.disk_type": autopilot,
	"auto_provisioning_defaults.oauth_scopes": autopilot,
	"autoscaling_profile":                     autopilot,
	"resource_limits":                         autopilot,
	"member":                                  caseless,
	"project":                                 projectPrefix,
	"bucket":                                  bucketPrefix,
}

func never(_, _, _ string, _ *schema.ResourceData) bool  { return false }
func always(_, _, _ string, _ *schema.ResourceData) bool { return true }

func caseless(_, old, new string, _ *schema.ResourceData) bool { return strings.EqualFold(old, new) }

// unless takes nothing and a value that means nothing as the same.
func unless(empty string) schema.SchemaDiffSuppressFunc {
	return func(_, old, new string, _ *schema.ResourceData) bool {
		return (old == "" && new == empty) || (old == empty && new == "")
	}
}

// lastSegment takes a name and a URL that ends in it as the same, and two URLs
// that differ in their host or version only.
func lastSegment(_, old, new string, _ *schema.ResourceData) bool {
	if old == "" || new == "" {
		return false
	}
	if !strings.Contains(old, "/") || !strings.Contains(new, "/") {
		return segment(old) == segment(new)
	}
	return relative(old) == relative(new)
}

func segment(link string) string { return link[strings.LastIndex(link, "/")+1:] }

// relative returns a link without the part before the project.
func relative(link string) string {
	if i := strings.Index(link, "projects/"); i >= 0 {
		return link[i:]
	}
	return link
}

// withoutVersion takes a key and a version of it as the same.
func withoutVersion(_, old, new string, _ *schema.ResourceData) bool {
	key, _, _ := strings.Cut(relative(old), "/cryptoKeyVersions/")
	wanted, _, _ := strings.Cut(relative(new), "/cryptoKeyVersions/")
	return old != "" && key == wanted
}

func duration(_, old, new string, _ *schema.ResourceData) bool {
	from, err := time.ParseDuration(old)
	if err != nil {
		return false
	}
	to, err := time.ParseDuration(new)
	return err == nil && from == to
}

// netmask takes a range and the size that was asked for as the same.
func netmask(_, old, new string, _ *schema.ResourceData) bool {
	return strings.HasPrefix(new, "/") && strings.HasSuffix(old, new)
}

func projectPrefix(_, old, new string, _ *schema.ResourceData) bool {
	return strings.TrimPrefix(old, "projects/") == strings.TrimPrefix(new, "projects/")
}

func bucketPrefix(_, old, new string, _ *schema.ResourceData) bool {
	return strings.TrimPrefix(old, "b/") == strings.TrimPrefix(new, "b/")
}

// ownLabels keeps the labels that GKE gives to nodes out of a plan.
func ownLabels(key, old, new string, d *schema.ResourceData) bool {
	if strings.HasPrefix(segment(key), "cloud.google.com") || strings.Contains(key, "labels.cloud.google.com/") {
		return new == ""
	}
	return false
}

// autopilot clusters decide for themselves.
func autopilot(_, _, _ string, d *schema.ResourceData) bool {
	on, _ := d.Get("enable_autopilot").(bool)
	return on
}

// binaryAuthorization takes one that is off and none as the same.
func binaryAuthorization(key, old, new string, d *schema.ResourceData) bool {
	if key == "binary_authorization.#" && old == "1" && new == "0" {
		before, _ := d.GetChange("binary_authorization.0.enabled")
		return before == false
	}
	return key == "binary_authorization.0.enabled" && old == "false" && new == ""
}

// secretManager takes one that is off and none as the same.
func secretManager(key, old, new string, d *schema.ResourceData) bool {
	before, _ := d.GetChange("secret_manager_config.0.enabled")
	return key == "secret_manager_config.#" && old == "1" && new == "0" && before == false
}

func podSecurity(key, old, new string, _ *schema.ResourceData) bool {
	return (key == "pod_security_policy_config.#" && old == "1" && new == "0") ||
		(key == "pod_security_policy_config.0.enabled" && old == "false" && new == "")
}

// autoclassOff takes none and one that is off as the same.
func autoclassOff(key, old, new string, d *schema.ResourceData) bool {
	_, wanted := d.GetChange("autoclass.0.enabled")
	return key == "autoclass.#" && old == "0" && new == "1" && wanted == false
}

// privateCluster takes a block with nothing turned on and none as the same.
func privateCluster(key, _, _ string, d *schema.ResourceData) bool {
	off := func(name string) bool {
		before, after := d.GetChange("private_cluster_config.0." + name)
		return before == false && after == false
	}
	_, subnetwork := d.GetOk("private_cluster_config.0.private_endpoint_subnetwork")
	_, global := d.GetOk("private_cluster_config.0.master_global_access_config")
	switch key {
	case "private_cluster_config.0.enable_private_endpoint":
		return off("enable_private_endpoint") && !subnetwork
	case "private_cluster_config.0.enable_private_nodes":
		return off("enable_private_nodes") && !subnetwork
	case "private_cluster_config.#":
		return off("enable_private_endpoint") && off("enable_private_nodes") && !subnetwork && !global
	}
	return false
}
