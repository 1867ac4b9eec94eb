package terraform

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/hashicorp/go-cty/cty"
	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"

	"persia/sandbox/gcp/google"
)

// API answers the provider's requests.
type API interface {
	Create(ctx context.Context, kind, name string, request google.Body) error
	// Update changes a field. No value is a request that does not name it.
	Update(ctx context.Context, kind, name, field string, value any) error
	// Get returns a resource, or nil if it does not exist.
	Get(ctx context.Context, kind, name string) (google.Body, error)
	Delete(ctx context.Context, kind, name string) error
}

// kindResource reads and writes the resources of a kind.
type kindResource struct {
	converter
	api API
	// Fields are the fields of the provider's schema.
	Fields map[string]*schema.Schema
}

// newResource has a resource of the schema read from and written to an API.
func newResource(name string, resource *schema.Resource, api API) (kindResource, error) {
	kind, known := kinds[name]
	if !known {
		return kindResource{}, fmt.Errorf("schema.json: %s has no kind", name)
	}
	c := kindResource{converter{kind}, api, resource.Schema}
	c.install(resource)
	return c, nil
}

// Token is Pulumi's type.
func (c kindResource) Token() tokens.Type { return tokens.Type(c.kind.token) }

// API returns the API's name of the kind.
func (c kindResource) API() string { return c.kind.api }

// Identifier returns the identifier of a resource with the given values of its fields.
func (c kindResource) Identifier(value func(field string) string) string {
	return c.kind.identifier(value)
}

func (c kindResource) install(resource *schema.Resource) {
	resource.CreateContext = c.create
	resource.ReadContext = c.read
	resource.DeleteContext = c.delete
	resource.Importer = &schema.ResourceImporter{StateContext: c.imported}
	// A resource in which nothing can be updated must not have an update.
	for _, field := range c.Fields {
		if (field.Optional || field.Required) && !field.ForceNew {
			resource.UpdateContext = c.update
		}
	}
}

// request returns the body of a request for a planned resource.
func (c kindResource) request(d *schema.ResourceData) google.Body {
	planned, _ := plain(d.GetRawPlan()).(map[string]any)
	body := google.Clone(c.expand(c.Fields, planned, ""))
	if c.kind.prepare != nil {
		c.kind.prepare(body)
	}
	return body
}

func (c kindResource) create(ctx context.Context, d *schema.ResourceData, _ any) diag.Diagnostics {
	id := c.kind.identifier(func(field string) string { return fmt.Sprint(d.Get(field)) })
	if err := c.api.Create(ctx, c.kind.api, id, c.request(d)); err != nil {
		return diag.Errorf("Error creating %s: %s", id, err)
	}
	d.SetId(id)
	return c.read(ctx, d, nil)
}

func (c kindResource) update(ctx context.Context, d *schema.ResourceData, _ any) diag.Diagnostics {
	request := c.request(d)
	for _, field := range slices.Sorted(maps.Keys(c.Fields)) {
		if slices.Contains(c.kind.local, field) || !d.HasChange(field) {
			continue
		}
		if err := c.updateField(ctx, d, request, c.Fields, "", field); err != nil {
			return diag.Errorf("Error updating %s: %s", d.Id(), err)
		}
	}
	return c.read(ctx, d, nil)
}

// updateField sends the change of a field, or of each field inside of it.
func (c kindResource) updateField(ctx context.Context, d *schema.ResourceData, request google.Body, fields map[string]*schema.Schema, at, field string) error {
	s := fields[field]
	if !s.Optional && !s.Required {
		return nil
	}
	if at == "" && slices.Contains(c.kind.inside, field) {
		below, _ := google.Lookup(request, c.path(at, field))
		body, _ := below.(google.Body)
		for _, inner := range slices.Sorted(maps.Keys(nested(s))) {
			if d.HasChange(field + ".0." + inner) {
				if err := c.updateField(ctx, d, body, nested(s), field+".", inner); err != nil {
					return err
				}
			}
		}
		return nil
	}
	value, _ := google.Lookup(request, c.path(at, field))
	if isEmpty(value) && slices.Contains(c.kind.silent, at+field) {
		value = nil
	} else if value == nil {
		value = google.Body{}
	}
	path := c.path(at, field)
	if at != "" {
		path = c.path("", at[:len(at)-1]) + "." + path
	}
	return c.api.Update(ctx, c.kind.api, d.Id(), path, value)
}

func isEmpty(value any) bool {
	body, isBody := value.(google.Body)
	return value == nil || isBody && len(body) == 0
}

func (c kindResource) read(ctx context.Context, d *schema.ResourceData, _ any) diag.Diagnostics {
	body, err := c.api.Get(ctx, c.kind.api, d.Id())
	if err != nil {
		return diag.Errorf("Error reading %s: %s", d.Id(), err)
	}
	if body == nil {
		d.SetId("")
		return nil
	}
	object, err := c.Object(d.Id(), body)
	if err != nil {
		return diag.FromErr(err)
	}
	if _, labelled := c.Fields["effective_labels"]; labelled {
		ownLabelsOnly(d, object, body)
	}
	for field, value := range object {
		if err := d.Set(field, value); err != nil {
			return diag.Errorf("field %s of %s: %s", field, d.Id(), err)
		}
	}
	return nil
}

// Object returns a body as the provider's object.
func (c kindResource) Object(id string, body google.Body) (map[string]any, error) {
	values, ok := c.kind.values(id)
	if !ok {
		return nil, fmt.Errorf("identifier %q is not like %s", id, c.kind.id)
	}
	object := c.flatten(c.Fields, body, "")
	for field, value := range values {
		// Some APIs answer with the whole path as the name.
		if c.Fields[field] != nil && (object[field] == "" || field == "name") {
			object[field] = value
		}
	}
	if c.kind.finish != nil {
		c.kind.finish(object, body, values)
	}
	return object, nil
}

// ownLabelsOnly removes the labels of others before the comparison with the program's.
func ownLabelsOnly(d *schema.ResourceData, object map[string]any, body google.Body) {
	all, _ := body["labels"].(google.Body)
	for _, field := range []string{"labels", "terraform_labels"} {
		own := map[string]any{}
		for key := range d.Get(field).(map[string]any) {
			if value, there := all[key]; there {
				own[key] = value
			}
		}
		object[field] = own
	}
	object["effective_labels"] = all
}

func (c kindResource) delete(ctx context.Context, d *schema.ResourceData, _ any) diag.Diagnostics {
	if c.Fields["deletion_protection"] != nil && d.Get("deletion_protection") == true {
		return diag.Errorf("Cannot destroy cluster because deletion_protection is set to true. " +
			"Set persia:cluster.deletionProtection to false and run up first.")
	}
	if c.kind.stays {
		return nil
	}
	if err := c.api.Delete(ctx, c.kind.api, d.Id()); err != nil {
		return diag.Errorf("Error deleting %s: %s", d.Id(), err)
	}
	return nil
}

// imported gives fields that no API knows their defaults.
func (c kindResource) imported(_ context.Context, d *schema.ResourceData, _ any) ([]*schema.ResourceData, error) {
	for _, field := range c.kind.local {
		if s := c.Fields[field]; s != nil && s.Default != nil {
			if err := d.Set(field, s.Default); err != nil {
				return nil, err
			}
		}
	}
	return []*schema.ResourceData{d}, nil
}

// plain returns a value of the SDK as JSON has it. What is null or not known is nil.
func plain(value cty.Value) any {
	if !value.IsKnown() || value.IsNull() {
		return nil
	}
	switch of := value.Type(); {
	case of == cty.String:
		return value.AsString()
	case of == cty.Bool:
		return value.True()
	case of == cty.Number:
		number, _ := new(big.Float).Set(value.AsBigFloat()).Float64()
		return number
	case of.IsObjectType() || of.IsMapType():
		object := map[string]any{}
		for name, element := range value.AsValueMap() {
			object[name] = plain(element)
		}
		return object
	default:
		list := []any{}
		for _, element := range value.AsValueSlice() {
			list = append(list, plain(element))
		}
		return list
	}
}
