package terraform

import (
	"context"
	"net/netip"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/customdiff"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// customizeDiffs are the additions of terraform-provider-google-beta 5.42 to the plans of
// single resources, as far as the program reaches it.
var customizeDiffs = map[string]schema.CustomizeDiffFunc{
	"google_container_cluster": customdiff.ForceNewIfChange("enable_l4_ilb_subsetting", isTurnedOff),
	"google_compute_subnetwork": customdiff.ForceNewIfChange("ip_cidr_range", func(_ context.Context, old, new, _ any) bool {
		return !widens(old.(string), new.(string))
	}),
	"google_compute_disk":        customdiff.ForceNewIfChange("size", isSmaller),
	"google_compute_region_disk": customdiff.ForceNewIfChange("size", isSmaller),
}

// customizeDiff returns the function that changes the plans of a resource with certain fields.
func customizeDiff(name string, fields map[string]*schema.Schema) schema.CustomizeDiffFunc {
	switch own, labelled := customizeDiffs[name], fields["effective_labels"] != nil; {
	case labelled && own != nil:
		return customdiff.All(own, labels)
	case labelled:
		return labels
	default:
		return own
	}
}

func isTurnedOff(_ context.Context, old, new, _ any) bool { return old == true && new == false }

func isSmaller(_ context.Context, old, new, _ any) bool { return new.(int) < old.(int) }

// widens reports whether a range contains another: Google Cloud extends a range in
// place, and takes no address back.
func widens(old, new string) bool {
	from, fromErr := netip.ParsePrefix(old)
	to, toErr := netip.ParsePrefix(new)
	return fromErr == nil && toErr == nil && to.Bits() <= from.Bits() && to.Contains(from.Addr())
}

// labels keeps the two computed maps in step with the program's labels.
func labels(_ context.Context, d *schema.ResourceDiff, _ any) error {
	if !d.GetRawPlan().GetAttr("labels").IsWhollyKnown() {
		return d.SetNewComputed("effective_labels")
	}
	before, after := d.GetChange("labels")
	own := after.(map[string]any)
	effective := map[string]any{}
	for key, value := range d.Get("effective_labels").(map[string]any) {
		if _, removed := before.(map[string]any)[key]; !removed {
			effective[key] = value
		}
	}
	for key, value := range own {
		effective[key] = value
	}
	if err := d.SetNew("terraform_labels", own); err != nil {
		return err
	}
	return d.SetNew("effective_labels", effective)
}
