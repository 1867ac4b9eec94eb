package gcp

import (
	"context"
	"net/netip"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/customdiff"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"

	"persia/sandbox/gcp/google"
)

// suppression returns the function that suppresses differences of a field, by the field's path in
// schema.json: the function of its longest listed suffix.
func suppression(path string) (schema.SchemaDiffSuppressFunc, bool) {
	for more := true; more; _, path, more = strings.Cut(path, ".") {
		if suppress, known := suppressions[path]; known {
			return suppress, true
		}
	}
	return nil, false
}

// suppressions are the suppressions of terraform-provider-google-beta 5.42, as far as the program
// reaches them.
var suppressions = map[string]schema.SchemaDiffSuppressFunc{
	"image_type":                          caseless,
	"datapath_provider":                   unless("DATAPATH_PROVIDER_UNSPECIFIED"),
	"mode":                                unless("MODE_UNSPECIFIED"),
	"vulnerability_mode":                  unless("VULNERABILITY_MODE_UNSPECIFIED"),
	"interface":                           func(_, _, _ string, _ *schema.ResourceData) bool { return true }, // no longer has an effect
	"node_config.labels":                  ownLabels,
	"node_config.oauth_scopes":            never, // only with scopes of the machine's own
	"guest_accelerator.type":              lastSegment,
	"network":                             lastSegment,
	"subnetwork":                          lastSegment,
	"private_cluster_config":              privateCluster,
	"enable_private_endpoint":             privateCluster,
	"enable_private_nodes":                privateCluster,
	"router":                              lastSegment,
	"repository":                          lastSegment,
	"region":                              lastSegment,
	"zone":                                lastSegment,
	"type":                                lastSegment,
	"kms_key_self_link":                   withoutVersion,
	"format":                              caseless,
	"binary_authorization":                binaryAuthorization,
	"dns_config":                          never, // only with Autopilot, as the next
	"autoscaling_profile":                 never,
	"daily_maintenance_window.start_time": never,
	"recurring_window.recurrence":         never,
	"cluster_ipv4_cidr_block":             never, // only if the size of a range is asked for, as the next
	"services_ipv4_cidr_block":            never,
	"member":                              caseless,
	"project":                             without("projects/"),
	"bucket":                              without("b/"),
}

func never(_, _, _ string, _ *schema.ResourceData) bool { return false }

func caseless(_, old, new string, _ *schema.ResourceData) bool { return strings.EqualFold(old, new) }

// unless takes nothing and a value that means nothing as the same.
func unless(empty string) schema.SchemaDiffSuppressFunc {
	return func(_, old, new string, _ *schema.ResourceData) bool {
		return (old == "" && new == empty) || (old == empty && new == "")
	}
}

// without takes a name with and without a prefix as the same.
func without(prefix string) schema.SchemaDiffSuppressFunc {
	return func(_, old, new string, _ *schema.ResourceData) bool {
		return strings.TrimPrefix(old, prefix) == strings.TrimPrefix(new, prefix)
	}
}

// lastSegment takes a name and a URL that ends in it as the same, and two URLs
// that differ in their host or version only.
func lastSegment(_, old, new string, _ *schema.ResourceData) bool {
	if old == "" || new == "" {
		return false
	}
	if !strings.Contains(old, "/") || !strings.Contains(new, "/") {
		return google.Segment(old) == google.Segment(new)
	}
	return relative(old) == relative(new)
}

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

// ownLabels keeps the labels that GKE gives to nodes out of a plan.
func ownLabels(key, _, new string, _ *schema.ResourceData) bool {
	gkes := strings.HasPrefix(google.Segment(key), "cloud.google.com") || strings.Contains(key, "labels.cloud.google.com/")
	return gkes && new == ""
}

// binaryAuthorization takes one that is off and none as the same.
func binaryAuthorization(key, old, new string, d *schema.ResourceData) bool {
	if key == "binary_authorization.#" && old == "1" && new == "0" {
		before, _ := d.GetChange("binary_authorization.0.enabled")
		return before == false
	}
	return key == "binary_authorization.0.enabled" && old == "false" && new == ""
}

// privateCluster takes a block with nothing turned on and none as the same.
func privateCluster(key, _, _ string, d *schema.ResourceData) bool {
	off := func(name string) bool {
		before, after := d.GetChange("private_cluster_config.0." + name)
		return before == false && after == false
	}
	switch key {
	case "private_cluster_config.0.enable_private_endpoint":
		return off("enable_private_endpoint")
	case "private_cluster_config.0.enable_private_nodes":
		return off("enable_private_nodes")
	case "private_cluster_config.#":
		return off("enable_private_endpoint") && off("enable_private_nodes")
	}
	return false
}

// customizeDiffs are the additions of terraform-provider-google-beta 5.42 to the plans of
// single resources, as far as the program reaches it.
var customizeDiffs = map[string]schema.CustomizeDiffFunc{
	"google_container_cluster": customdiff.ForceNewIfChange("enable_l4_ilb_subsetting", func(_ context.Context, old, new, _ any) bool {
		return old == true && new == false
	}),
	"google_compute_subnetwork":  customdiff.ForceNewIfChange("ip_cidr_range", isNotWider),
	"google_compute_disk":        customdiff.ForceNewIfChange("size", isSmaller),
	"google_compute_region_disk": customdiff.ForceNewIfChange("size", isSmaller),
}

// customizeDiff returns the function that changes the plans of a resource with certain fields.
func customizeDiff(name string, in fields) schema.CustomizeDiffFunc {
	switch own, labelled := customizeDiffs[name], in["effective_labels"] != nil; {
	case labelled && own != nil:
		return customdiff.All(own, labels)
	case labelled:
		return labels
	default:
		return own
	}
}

func isSmaller(_ context.Context, old, new, _ any) bool { return new.(int) < old.(int) }

// isNotWider reports whether a range does not contain another: Google Cloud extends a range in
// place, and takes no address back.
func isNotWider(_ context.Context, old, new, _ any) bool {
	from, fromErr := netip.ParsePrefix(old.(string))
	to, toErr := netip.ParsePrefix(new.(string))
	return fromErr != nil || toErr != nil || to.Bits() > from.Bits() || !to.Contains(from.Addr())
}

// labels keeps the two computed maps in step with the program's labels.
func labels(_ context.Context, d *schema.ResourceDiff, _ any) error {
	if !d.GetRawPlan().GetAttr("labels").IsWhollyKnown() {
		return d.SetNewComputed("effective_labels")
	}
	before, after := d.GetChange("labels")
	effective := map[string]any{}
	for key, value := range d.Get("effective_labels").(map[string]any) {
		if _, removed := before.(map[string]any)[key]; !removed {
			effective[key] = value
		}
	}
	for key, value := range after.(map[string]any) {
		effective[key] = value
	}
	if err := d.SetNew("terraform_labels", after); err != nil {
		return err
	}
	return d.SetNew("effective_labels", effective)
}
