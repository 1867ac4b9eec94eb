package gcp

import (
	"context"
	"net/netip"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/customdiff"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"

	"persia/sandbox/gcp/google"
)

// sameLink suppresses the difference of a name and a URL that ends in it, and of two URLs that differ in
// their host or version only.
func sameLink(_, old, new string, _ *schema.ResourceData) bool {
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

// customizeDiffs are the additions of terraform-provider-google-beta 5.42 to the plans of
// single resources, as far as the program reaches it.
var customizeDiffs = map[string]schema.CustomizeDiffFunc{
	"google_container_cluster": customdiff.ForceNewIfChange("enable_l4_ilb_subsetting", func(_ context.Context, old, new, _ any) bool {
		return old == true && new == false
	}),
	"google_compute_subnetwork": customdiff.ForceNewIfChange("ip_cidr_range", isNotWider),
}

// isNotWider reports whether a range does not contain another: Google Cloud extends a range in
// place, and takes no address back.
func isNotWider(_ context.Context, old, new, _ any) bool {
	from, fromErr := netip.ParsePrefix(old.(string))
	to, toErr := netip.ParsePrefix(new.(string))
	return fromErr != nil || toErr != nil || to.Bits() > from.Bits() || !to.Contains(from.Addr())
}
