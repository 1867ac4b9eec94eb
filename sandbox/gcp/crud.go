package gcp

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"

	"persia/sandbox/gcp/google"
)

// resourceType reads and writes the resources of a kind, as pulumi-gcp's provider does.
type resourceType struct {
	kind
	// name is Terraform's.
	name   string
	fields fields
	api    *api
}

// install lets the SDK create, read, update and delete the resources.
func (r *resourceType) install(resource *schema.Resource) {
	resource.CreateContext = r.create
	resource.ReadContext = r.read
	resource.DeleteContext = r.delete
	resource.Importer = &schema.ResourceImporter{StateContext: r.imported}
	// A resource in which nothing can be updated must not have an update.
	for _, field := range r.fields {
		if (field.Optional || field.Required) && !field.ForceNew {
			resource.UpdateContext = r.update
		}
	}
}

// request returns the body of a request for a planned resource.
func (r *resourceType) request(d *schema.ResourceData) (google.Body, error) {
	planned, err := plain(d.GetRawPlan())
	body := r.expand(r.fields, planned, "")
	if prepare := preparations[r.name]; prepare != nil {
		prepare(body)
	}
	return body, err
}

func (r *resourceType) create(ctx context.Context, d *schema.ResourceData, _ any) diag.Diagnostics {
	id := r.identifier(func(field string) string { return fmt.Sprint(d.Get(field)) })
	request, err := r.request(d)
	if err == nil {
		err = r.api.create(ctx, r.API, id, request)
	}
	if err != nil {
		return diag.Errorf("Error creating %s: %s", id, err)
	}
	d.SetId(id)
	return r.read(ctx, d, nil)
}

func (r *resourceType) update(ctx context.Context, d *schema.ResourceData, _ any) diag.Diagnostics {
	request, err := r.request(d)
	if err != nil {
		return diag.FromErr(err)
	}
	for _, field := range slices.Sorted(maps.Keys(r.fields)) {
		if slices.Contains(r.Local, field) || !d.HasChange(field) {
			continue
		}
		if err := r.updateField(ctx, d, request, r.fields, "", field); err != nil {
			return diag.Errorf("Error updating %s: %s", d.Id(), err)
		}
	}
	return r.read(ctx, d, nil)
}

// updateField sends the change of a field, or of each field inside of it.
func (r *resourceType) updateField(ctx context.Context, d *schema.ResourceData, request google.Body, in fields, at, field string) error {
	s := in[field]
	if !s.Optional && !s.Required {
		return nil
	}
	value, _ := google.Lookup(request, r.path(at, field))
	body, isBody := value.(google.Body)
	if at == "" && slices.Contains(r.Inside, field) {
		for _, inner := range slices.Sorted(maps.Keys(nested(s))) {
			if d.HasChange(field + ".0." + inner) {
				if err := r.updateField(ctx, d, body, nested(s), field+".", inner); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if nothing := value == nil || isBody && len(body) == 0; nothing && slices.Contains(r.Silent, at+field) {
		value = nil
	} else if value == nil {
		value = google.Body{}
	}
	path := r.path(at, field)
	if at != "" {
		path = r.path("", at[:len(at)-1]) + "." + path
	}
	return r.api.update(ctx, r.API, d.Id(), path, value)
}

func (r *resourceType) read(ctx context.Context, d *schema.ResourceData, _ any) diag.Diagnostics {
	body, err := r.api.get(ctx, r.API, d.Id())
	if err != nil {
		return diag.Errorf("Error reading %s: %s", d.Id(), err)
	}
	if body == nil {
		d.SetId("")
		return nil
	}
	object, err := r.object(d.Id(), body)
	if err != nil {
		return diag.FromErr(err)
	}
	// Of the labels, only those that the program has given are its own: an imported resource has none.
	if labels, ok := object["labels"].(map[string]any); ok && r.fields["effective_labels"] != nil {
		given := d.Get("labels").(map[string]any)
		own := map[string]any{}
		for key, value := range labels {
			if _, ok := given[key]; ok {
				own[key] = value
			}
		}
		object["labels"] = own
	}
	for field, value := range object {
		if err := d.Set(field, value); err != nil {
			return diag.Errorf("field %s of %s: %s", field, d.Id(), err)
		}
	}
	return nil
}

// object returns a body as the provider's object.
func (r *resourceType) object(id string, body google.Body) (map[string]any, error) {
	values, ok := r.values(id)
	if !ok {
		return nil, fmt.Errorf("identifier %q is not like %s", id, r.ID)
	}
	object := r.flatten(r.fields, body, "")
	for field, value := range values {
		// Some APIs answer with the whole path as the name.
		if r.fields[field] != nil && (object[field] == "" || field == "name") {
			object[field] = value
		}
	}
	for field, text := range r.Computed {
		object[field] = os.Expand(text, func(of string) string { return fmt.Sprint(object[of]) })
	}
	if finish := completions[r.name]; finish != nil {
		finish(object, body)
	}
	return object, nil
}

func (r *resourceType) delete(ctx context.Context, d *schema.ResourceData, _ any) diag.Diagnostics {
	if r.fields["deletion_protection"] != nil && d.Get("deletion_protection") == true {
		return diag.Errorf("Cannot destroy cluster because deletion_protection is set to true. " +
			"Set persia:cluster.deletionProtection to false and run up first.")
	}
	if r.Stays {
		return nil
	}
	if err := r.api.delete(ctx, r.API, d.Id()); err != nil {
		return diag.Errorf("Error deleting %s: %s", d.Id(), err)
	}
	return nil
}

// imported gives fields that no API knows their defaults.
func (r *resourceType) imported(_ context.Context, d *schema.ResourceData, _ any) ([]*schema.ResourceData, error) {
	for _, field := range r.Local {
		if s := r.fields[field]; s != nil && s.Default != nil {
			if err := d.Set(field, s.Default); err != nil {
				return nil, err
			}
		}
	}
	return []*schema.ResourceData{d}, nil
}
