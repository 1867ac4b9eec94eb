package gcp

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/customdiff"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/validation"

	"persia/sandbox/gcp/google"
)

//go:embed schema.json
var schemaJSON []byte

// field is a field of schema.json. The file has the SDK's own Optional, Computed, Required, ForceNew, Default, and MaxItems.
type field struct {
	schema.Schema
	Type           string
	Fields         map[string]field
	DiffSuppressed bool
	ConfigMode     string
	Restriction    restriction
}

// restriction limits the values of a field.
type restriction struct {
	OneOf         []string
	ConflictsWith []string
	ExactlyOneOf  []string
	AtLeast       *int
	Matches       string
	// Never says what is wrong with a text by the regular expression that it matches.
	Never map[string]string
	// Format is CIDR or time.
	Format string
}

var valueTypes = map[string]schema.ValueType{
	"Bool": schema.TypeBool, "Int": schema.TypeInt, "Float": schema.TypeFloat, "String": schema.TypeString,
	"List": schema.TypeList, "Set": schema.TypeSet, "Map": schema.TypeMap,
}

// readSchema returns the resources by their Terraform names, without anything that reads or writes.
func readSchema() (map[string]*schema.Resource, error) {
	var all map[string]field
	if err := json.Unmarshal(schemaJSON, &all); err != nil {
		return nil, fmt.Errorf("schema.json: %w", err)
	}
	converted := map[string]*schema.Resource{}
	for name, resource := range all {
		converted[name] = &schema.Resource{Schema: resource.below(), CustomizeDiff: customizeDiffs[name]}
	}
	// The file has no functions.
	converted["google_storage_bucket"].Schema["location"].StateFunc = func(location any) string {
		return strings.ToUpper(location.(string))
	}
	return converted, nil
}

// below returns the fields below a field.
func (f field) below() fields {
	converted := fields{}
	for name, field := range f.Fields {
		converted[name] = field.schema()
	}
	return converted
}

func (f field) schema() *schema.Schema {
	converted := &f.Schema
	converted.Type = valueTypes[f.Type]
	converted.ConflictsWith, converted.ExactlyOneOf = f.Restriction.ConflictsWith, f.Restriction.ExactlyOneOf
	if number, ok := f.Default.(float64); ok && f.Type == "Int" {
		converted.Default = int(number)
	}
	if f.ConfigMode == "attr" {
		converted.ConfigMode = schema.SchemaConfigModeAttr
	}
	if f.DiffSuppressed {
		converted.DiffSuppressFunc = sameLink
	}
	valid := f.Restriction.validation()
	switch {
	case f.Fields != nil:
		converted.Elem = &schema.Resource{Schema: f.below()}
	case f.Type == "List" || f.Type == "Set" || f.Type == "Map":
		// Only texts are without fields in the file.
		converted.Elem = &schema.Schema{Type: schema.TypeString, ValidateFunc: valid}
	default:
		converted.ValidateFunc = valid
	}
	return converted
}

// validation returns the validation of a single value, or nil.
func (r restriction) validation() func(value any, key string) ([]string, []error) {
	switch {
	case r.OneOf != nil:
		return validation.StringInSlice(r.OneOf, false)
	case r.AtLeast != nil:
		return validation.IntAtLeast(*r.AtLeast)
	case r.Matches != "":
		valid := validation.StringMatch(regexp.MustCompile(r.Matches), "it does not match "+r.Matches)
		for pattern, say := range r.Never {
			valid = validation.All(valid, validation.StringDoesNotMatch(regexp.MustCompile(pattern), say))
		}
		return valid
	case r.Format == "CIDR":
		return validation.IsCIDR
	case r.Format == "time":
		return validation.IsRFC3339Time
	}
	return nil
}

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
