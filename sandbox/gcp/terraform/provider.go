package terraform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	shim "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/diagnostics"
	shimv2 "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/sdk-v2"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"

	"persia/sandbox/gcp/google"
)

// Provider plans and makes changes.
type Provider struct {
	shim      shim.Provider
	resources map[string]*schema.Resource
	names     map[tokens.Type]string
	// kinds read and write the resources, by their Terraform names.
	kinds map[string]kindResource
}

// New returns a provider that reads from and writes to an API.
func New(api API) (*Provider, error) {
	resources, err := readSchema()
	if err != nil {
		return nil, err
	}
	p := &Provider{resources: resources, names: map[tokens.Type]string{}, kinds: map[string]kindResource{}}
	for name, resource := range resources {
		kind, err := newResource(name, resource, api)
		if err != nil {
			return nil, err
		}
		p.names[kind.Token()] = name
		p.kinds[name] = kind
	}
	p.shim = shimv2.NewProvider(&schema.Provider{ResourcesMap: resources},
		shimv2.WithPlanResourceChange(func(string) bool { return true }))
	return p, nil
}

// Has reports whether the provider has a type.
func (p *Provider) Has(token tokens.Type) bool { return p.names[token] != "" }

func (p *Provider) fields(token tokens.Type) map[string]*schema.Schema {
	return p.resources[p.names[token]].Schema
}

// Properties returns the properties that Pulumi would store for a resource, by its API's name and body.
func (p *Provider) Properties(api, id string, body google.Body) (resource.PropertyMap, error) {
	for _, kind := range p.kinds {
		if kind.API() == api {
			object, err := kind.Object(id, body)
			return toPulumi(kind.Fields, object), err
		}
	}
	return nil, fmt.Errorf("no resource has the API %s", api)
}

// Found returns the result of Pulumi's function that looks a resource up. A block that occurs
// at most once is a list there.
func (p *Provider) Found(api, id string, body google.Body) (resource.PropertyMap, error) {
	for _, kind := range p.kinds {
		if kind.API() == api {
			object, err := kind.Object(id, body)
			if err == nil && kind.Fields["effective_labels"] != nil {
				object["effective_labels"] = object["labels"]
			}
			return toPulumi(unbounded(kind.Fields), object), err
		}
	}
	return nil, fmt.Errorf("no resource has the API %s", api)
}

// unbounded are fields with any number of elements in each list.
func unbounded(fields map[string]*schema.Schema) map[string]*schema.Schema {
	copied := map[string]*schema.Schema{}
	for name, field := range fields {
		s := *field
		s.MaxItems = 0
		if below := nested(field); below != nil {
			s.Elem = &schema.Resource{Schema: unbounded(below)}
		}
		copied[name] = &s
	}
	return copied
}

// Check validates inputs and adds the schema's defaults to them.
func (p *Provider) Check(ctx context.Context, req plugin.CheckRequest) (plugin.CheckResponse, error) {
	token := req.URN.Type()
	inputs := req.News
	resp := plugin.CheckResponse{Properties: withDefaults(p.fields(token), inputs)}
	fail := func(format string, args ...any) {
		resp.Failures = append(resp.Failures, plugin.CheckFailure{Reason: fmt.Sprintf(format, args...)})
	}
	object, unknown := toTerraform(p.fields(token), inputs)
	for _, name := range unknown {
		fail("%s is not a property of %s", name, token)
	}
	for _, wrong := range mistyped(p.fields(token), inputs) {
		fail("%s, which it is in pulumi-gcp's schema of %s", wrong, token)
	}
	for _, refusal := range p.refusals(ctx, token, object) {
		fail("%s", refusal)
	}
	if inputs["project"].IsNull() && p.fields(token)["project"] != nil && p.kinds[p.names[token]].API() != "storage.bucket" {
		fail("project is required: the simulated Google Cloud has no default project")
	}
	return resp, nil
}

// refusals returns the errors of the provider's validation, sorted: the provider visits fields in
// the random order of a map.
func (p *Provider) refusals(ctx context.Context, token tokens.Type, object map[string]any) []string {
	_, errs := p.shim.ValidateResource(ctx, p.names[token], p.shim.NewResourceConfig(ctx, object))
	var texts []string
	for _, err := range errs {
		texts = append(texts, reason(err))
	}
	slices.Sort(texts)
	return texts
}

// reason returns the text of a refusal as the bridge shows it.
func reason(err error) string {
	if refused := (*diagnostics.ValidationError)(nil); errors.As(err, &refused) {
		return strings.TrimSuffix(refused.Summary+". "+refused.Detail, ". ")
	}
	return err.Error()
}

// ID returns the identifier of the resource that inputs describe.
func (p *Provider) ID(token tokens.Type, inputs resource.PropertyMap) resource.ID {
	object, _ := toTerraform(p.fields(token), inputs)
	kind := p.kinds[p.names[token]]
	return resource.ID(kind.Identifier(func(field string) string { return fmt.Sprint(object[field]) }))
}

// plan is the planned state of a resource.
type plan struct {
	prior shim.InstanceState
	diff  shim.InstanceDiff
}

func (p *Provider) plan(ctx context.Context, token tokens.Type, id resource.ID, olds, inputs resource.PropertyMap, ignored []string) (plan, error) {
	name := p.names[token]
	var prior shim.InstanceState
	if id != "" {
		var err error
		if prior, err = p.state(token, id, olds); err != nil {
			return plan{}, err
		}
	}
	config, _ := toTerraform(p.fields(token), inputs)
	diff, err := p.shim.Diff(ctx, name, prior, p.shim.NewResourceConfig(ctx, config), shim.DiffOptions{
		IgnoreChanges: func() map[string]struct{} { return ignoredKeys(p.fields(token), ignored) },
	})
	return plan{prior, diff}, err
}

// state returns Terraform's state of a resource.
func (p *Provider) state(token tokens.Type, id resource.ID, properties resource.PropertyMap) (shim.InstanceState, error) {
	object, _ := toTerraform(p.fields(token), properties)
	return p.shim.ResourcesMap().Get(p.names[token]).InstanceState(string(id), object, nil)
}

// properties returns Pulumi's properties for a state of Terraform.
func (p *Provider) properties(token tokens.Type, state shim.InstanceState) (resource.PropertyMap, error) {
	object, err := state.Object(nil)
	if err != nil {
		return nil, err
	}
	properties := toPulumi(p.fields(token), object)
	properties["id"] = resource.NewProperty(state.ID())
	return properties, nil
}

// Create creates a resource, or returns the planned one in a preview.
func (p *Provider) Create(ctx context.Context, token tokens.Type, inputs resource.PropertyMap, preview bool) (resource.ID, resource.PropertyMap, error) {
	planned, err := p.plan(ctx, token, "", nil, inputs, nil)
	if err != nil {
		return "", nil, err
	}
	return p.apply(ctx, token, planned, preview)
}

// Update changes a resource in place, or returns the planned one in a preview.
func (p *Provider) Update(ctx context.Context, token tokens.Type, id resource.ID, olds, inputs resource.PropertyMap, ignored []string, preview bool) (resource.PropertyMap, error) {
	planned, err := p.plan(ctx, token, id, olds, inputs, ignored)
	if err != nil {
		return nil, err
	}
	_, state, err := p.apply(ctx, token, planned, preview)
	return state, err
}

func (p *Provider) apply(ctx context.Context, token tokens.Type, planned plan, preview bool) (resource.ID, resource.PropertyMap, error) {
	name := p.names[token]
	var state shim.InstanceState
	var err error
	if preview {
		state, err = planned.diff.ProposedState(p.shim.ResourcesMap().Get(name), planned.prior)
	} else {
		state, err = p.applyAndRead(ctx, name, planned)
	}
	if err != nil {
		return "", nil, err
	}
	properties, err := p.properties(token, state)
	if preview {
		delete(properties, "id")
	}
	return resource.ID(state.ID()), properties, err
}

// applyAndRead carries a plan out. What an update leaves null, a refresh reads as
// empty, which is the same to every plan; the state has it as a refresh does.
func (p *Provider) applyAndRead(ctx context.Context, name string, planned plan) (shim.InstanceState, error) {
	state, err := p.shim.Apply(ctx, name, planned.prior, planned.diff)
	if err != nil {
		return nil, err
	}
	now, err := p.shim.Refresh(ctx, name, state, p.shim.NewResourceConfig(ctx, nil))
	if err == nil && now == nil {
		err = fmt.Errorf("%s is gone after it was made", state.ID())
	}
	return now, err
}

// Read reads a resource, nil if it is gone. Without a state, it is imported.
func (p *Provider) Read(ctx context.Context, token tokens.Type, id resource.ID, state resource.PropertyMap) (resource.PropertyMap, error) {
	name := p.names[token]
	var prior shim.InstanceState
	var err error
	if len(state) == 0 {
		prior, err = p.imported(name, id)
	} else {
		prior, err = p.state(token, id, state)
	}
	if err != nil || prior == nil {
		return nil, err
	}
	now, err := p.shim.Refresh(ctx, name, prior, p.shim.NewResourceConfig(ctx, nil))
	if err != nil || now == nil {
		return nil, err
	}
	return p.properties(token, now)
}

func (p *Provider) imported(name string, id resource.ID) (shim.InstanceState, error) {
	states, err := p.shim.ResourcesMap().Get(name).Importer()(name, string(id), nil)
	if err != nil || len(states) == 0 {
		return nil, err
	}
	return states[0], nil
}

// Delete removes a resource.
func (p *Provider) Delete(ctx context.Context, token tokens.Type, id resource.ID, state resource.PropertyMap) error {
	prior, err := p.state(token, id, state)
	if err != nil {
		return err
	}
	name := p.names[token]
	_, err = p.shim.Apply(ctx, name, prior, p.shim.NewDestroyDiff(ctx, name, shim.TimeoutOptions{}))
	return err
}

// Inputs returns the program's inputs of a resource with their current values. For an imported
// resource, these are all inputs that a program could set.
func (p *Provider) Inputs(token tokens.Type, given, properties resource.PropertyMap) resource.PropertyMap {
	if len(given) == 0 {
		return inputs(p.fields(token), properties)
	}
	return current(p.fields(token), given, properties)
}

func inputs(fields map[string]*schema.Schema, properties resource.PropertyMap) resource.PropertyMap {
	possible := resource.PropertyMap{}
	for field, s := range fields {
		key := resource.PropertyKey(pulumiName(fields, field))
		if value, held := properties[key]; held && (s.Optional || s.Required) {
			possible[key] = value
		}
	}
	return possible
}

// withDefaults returns inputs with the schema's defaults, as the bridge returns them to the engine:
// a refresh replaces them too, and ignoreChanges keeps the values that it read.
func withDefaults(fields map[string]*schema.Schema, inputs resource.PropertyMap) resource.PropertyMap {
	filled := resource.PropertyMap{}
	for key, value := range inputs {
		filled[key] = withDefaultsInside(nested(fields[terraformName(fields, string(key))]), value)
	}
	for field, s := range fields {
		if key := resource.PropertyKey(pulumiName(fields, field)); s.Default != nil && filled[key].IsNull() {
			filled[key] = resource.NewPropertyValue(s.Default)
		}
	}
	return filled
}

func withDefaultsInside(fields map[string]*schema.Schema, value resource.PropertyValue) resource.PropertyValue {
	switch {
	case fields == nil:
		return value
	case value.IsObject():
		return resource.NewProperty(withDefaults(fields, value.ObjectValue()))
	case value.IsArray():
		var list []resource.PropertyValue
		for _, element := range value.ArrayValue() {
			list = append(list, withDefaultsInside(fields, element))
		}
		return resource.NewProperty(list)
	default:
		return value
	}
}

// current returns the current values of a program's inputs, to the same depth. It omits fields that
// are gone.
func current(fields map[string]*schema.Schema, given, properties resource.PropertyMap) resource.PropertyMap {
	now := resource.PropertyMap{}
	for key, value := range given {
		if found, held := properties[key]; held {
			now[key] = currentValue(fields[terraformName(fields, string(key))], value, found)
		}
	}
	return now
}

func currentValue(s *schema.Schema, given, found resource.PropertyValue) resource.PropertyValue {
	switch {
	case given.IsObject() && found.IsObject():
		return resource.NewProperty(current(nested(s), given.ObjectValue(), found.ObjectValue()))
	case given.IsArray() && found.IsArray():
		list := []resource.PropertyValue{}
		for i := range min(len(given.ArrayValue()), len(found.ArrayValue())) {
			list = append(list, currentValue(s, given.ArrayValue()[i], found.ArrayValue()[i]))
		}
		return resource.NewProperty(list)
	case s != nil && s.StateFunc != nil:
		return given
	default:
		return found
	}
}
