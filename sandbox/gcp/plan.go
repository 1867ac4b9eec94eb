package gcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	shim "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// plan is the planned state of a resource.
type plan struct {
	*resourceType
	prior shim.InstanceState
	diff  shim.InstanceDiff
}

// plan has the Terraform plugin SDK plan a creation, if id is "", or a change.
func (p *Provider) plan(ctx context.Context, urn resource.URN, id resource.ID, olds, inputs resource.PropertyMap,
	ignored []string) (plan, error) {
	r, err := p.typeOf(urn)
	if err != nil {
		return plan{}, err
	}
	var prior shim.InstanceState
	if id != "" {
		if prior, err = p.state(r, id, olds); err != nil {
			return plan{}, err
		}
	}
	config := toTerraform(r.fields, inputs)
	keys := map[string]struct{}{}
	for _, text := range ignored {
		if path, err := resource.ParsePropertyPath(text); err == nil {
			keys[attribute(r.fields, path)] = struct{}{}
		}
	}
	diff, err := p.shim.Diff(ctx, r.name, prior, p.shim.NewResourceConfig(ctx, config),
		shim.DiffOptions{IgnoreChanges: func() map[string]struct{} { return keys }})
	return plan{r, prior, diff}, err
}

// proposed returns the planned properties.
func (p *Provider) proposed(planned plan) (resource.PropertyMap, error) {
	state, err := planned.diff.ProposedState(p.shim.ResourcesMap().Get(planned.name), planned.prior)
	if err != nil {
		return nil, err
	}
	return planned.properties(state)
}

// state returns Terraform's state of a resource.
func (p *Provider) state(r *resourceType, id resource.ID, properties resource.PropertyMap) (shim.InstanceState, error) {
	object := toTerraform(r.fields, properties)
	return p.shim.ResourcesMap().Get(r.name).InstanceState(string(id), object, nil)
}

// properties returns Pulumi's properties for a state of Terraform.
func (r *resourceType) properties(state shim.InstanceState) (resource.PropertyMap, error) {
	object, err := state.Object(nil)
	if err != nil {
		return nil, err
	}
	properties := toPulumi(r.fields, object)
	properties["id"] = resource.NewProperty(state.ID())
	return properties, nil
}

// apply carries a plan out, or returns the planned resource in a preview. What an update leaves null,
// a refresh reads as empty, which is the same to every plan; the state has it as a refresh does.
func (p *Provider) apply(ctx context.Context, planned plan, preview bool) (resource.ID, resource.PropertyMap, error) {
	if preview {
		properties, err := p.proposed(planned)
		delete(properties, "id")
		return "", properties, err
	}
	state, err := p.shim.Apply(ctx, planned.name, planned.prior, planned.diff)
	if err != nil {
		return "", nil, err
	}
	now, err := p.shim.Refresh(ctx, planned.name, state, p.shim.NewResourceConfig(ctx, nil))
	if err == nil && now == nil {
		err = fmt.Errorf("%s is gone after it was made", state.ID())
	}
	if err != nil {
		return "", nil, err
	}
	properties, err := planned.properties(now)
	return resource.ID(now.ID()), properties, err
}

// detailedDiff names the properties that differ between state and plan. The SDK decides whether the
// resource changes, and whether the change replaces it. All properties are then marked, whichever is why.
func (p *Provider) detailedDiff(planned plan, hasName bool) (plugin.DiffResponse, error) {
	if planned.diff.HasNoChanges() {
		return plugin.DiffResult{Changes: plugin.DiffNone}, nil
	}
	future, err := p.proposed(planned)
	if err != nil {
		return plugin.DiffResponse{}, err
	}
	before, err := planned.properties(planned.prior)
	if err != nil {
		return plugin.DiffResponse{}, err
	}
	paths := plugin.NewDetailedDiffFromObjectDiff(before.Diff(future), false)
	diff := plugin.DiffResult{Changes: plugin.DiffSome, DetailedDiff: paths}
	if !planned.diff.RequiresNew() {
		return diff, nil
	}
	for path, change := range paths {
		paths[path] = change.ToReplace()
	}
	if len(paths) == 0 {
		diff.ReplaceKeys = []resource.PropertyKey{"__meta"}
	}
	// Two resources cannot share the name that the program gives. An entry of a policy has none.
	diff.DeleteBeforeReplace = hasName
	return diff, nil
}

// attribute returns the key that the SDK has a property at. Elements of sets are not found.
func attribute(in fields, path resource.PropertyPath) string {
	var keys []string
	for i, step := range path {
		name, isName := step.(string)
		field := terraformName(in, name)
		if !isName || field == "" {
			keys = append(keys, fmt.Sprint(step)) // an index, or a key of a map
			continue
		}
		s := in[field]
		keys = append(keys, field)
		in = nested(s)
		if in != nil && !isList(s) && i < len(path)-1 {
			keys = append(keys, "0")
		}
	}
	return strings.Join(keys, ".")
}

// withDefaults returns inputs with the schema's defaults, as the bridge returns them to the engine:
// a refresh replaces them too, and ignoreChanges keeps the values that it read.
func withDefaults(in fields, inputs resource.PropertyMap) resource.PropertyMap {
	filled := resource.PropertyMap{}
	for key, value := range inputs {
		filled[key] = withDefaultsInside(nested(in[terraformName(in, string(key))]), value)
	}
	for field, s := range in {
		if key := resource.PropertyKey(pulumiName(in, field)); s.Default != nil && filled[key].IsNull() {
			filled[key] = resource.NewPropertyValue(s.Default)
		}
	}
	return filled
}

func withDefaultsInside(in fields, value resource.PropertyValue) resource.PropertyValue {
	switch {
	case in != nil && value.IsObject():
		return resource.NewProperty(withDefaults(in, value.ObjectValue()))
	case in != nil && value.IsArray():
		var list []resource.PropertyValue
		for _, element := range value.ArrayValue() {
			list = append(list, withDefaultsInside(in, element))
		}
		return resource.NewProperty(list)
	default:
		return value
	}
}

// current returns the current values of a program's inputs, to the same depth. It omits fields that are gone. For an
// imported resource, whose inputs are not known, these are all inputs that a program could set.
func current(in fields, given, properties resource.PropertyMap, imported bool) resource.PropertyMap {
	now := resource.PropertyMap{}
	for field, s := range in {
		key := resource.PropertyKey(pulumiName(in, field))
		found, held := properties[key]
		value, asked := given[key]
		switch {
		case held && asked:
			now[key] = currentValue(s, value, found)
		case held && imported && (s.Optional || s.Required):
			now[key] = found
		}
	}
	return now
}

func currentValue(s *schema.Schema, given, found resource.PropertyValue) resource.PropertyValue {
	switch {
	case given.IsObject() && found.IsObject() && s.Type == schema.TypeMap:
		kept := resource.PropertyMap{}
		for key := range given.ObjectValue() {
			if value, held := found.ObjectValue()[key]; held {
				kept[key] = value
			}
		}
		return resource.NewProperty(kept)
	case given.IsObject() && found.IsObject():
		return resource.NewProperty(current(nested(s), given.ObjectValue(), found.ObjectValue(), false))
	case given.IsArray() && found.IsArray():
		list := []resource.PropertyValue{}
		for i := range min(len(given.ArrayValue()), len(found.ArrayValue())) {
			list = append(list, currentValue(s, given.ArrayValue()[i], found.ArrayValue()[i]))
		}
		return resource.NewProperty(list)
	case s.StateFunc != nil:
		return given
	default:
		return found
	}
}
