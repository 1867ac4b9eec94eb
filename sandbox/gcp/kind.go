package gcp

import (
	"context"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// kind is one type of resource.
type kind struct {
	// id is the identifier that Google Cloud's provider gives, with the names of
	// inputs in it as ${name}. These inputs are required, and each replaces the
	// resource.
	id string
	// autoNamed says that Pulumi names what the program gives no name, so that a
	// replacement has another one.
	autoNamed bool
	// replaceOn are the paths of further inputs that cannot be changed in place.
	replaceOn []string
	// inPlace reports whether a change at a path of replaceOn can be made in place
	// all the same. Nil is never.
	inPlace func(path string, old, new resource.PropertyMap) bool
	// outputs are the outputs beside the inputs. Nil is none.
	outputs func(inputs resource.PropertyMap) (map[string]any, error)

	// computed are inputs that have outputs inside of them, which a preview does not
	// know.
	computed []resource.PropertyKey

	// create refuses a resource that is there already. Nil never does.
	create func(id string) error
	// find returns the inputs of what is there by an identifier, nil if nothing is, so
	// that it can be imported. Without it, there is nothing but what the stack made.
	find func(id string) (resource.PropertyMap, error)
	// apply makes what the resource stands for agree with its inputs, whatever an
	// earlier attempt left of it. Without it, nothing stands for the resource.
	apply func(ctx context.Context, inputs resource.PropertyMap, progress func(message string)) error
	// read returns the inputs as they are by now, nil if the resource is gone.
	// Without it, nothing changes them but the program.
	read func(ctx context.Context, inputs resource.PropertyMap) (resource.PropertyMap, error)
	// remove removes what a resource of this state stands for, if it is there.
	remove func(ctx context.Context, state resource.PropertyMap) error
}

// required are the inputs that name a resource.
func (k kind) required() []resource.PropertyKey {
	var names []resource.PropertyKey
	os.Expand(k.id, func(name string) string {
		names = append(names, resource.PropertyKey(name))
		return ""
	})
	return names
}

// randomDigits is the length of what Pulumi adds to a name that it makes.
const randomDigits = 7

// named are the inputs of a resource with its name: that of the program, or the
// one that it has already, or a new one.
func (k kind) named(req plugin.CheckRequest) (resource.PropertyMap, error) {
	if !k.autoNamed || req.News.HasValue("name") {
		return req.News, nil
	}
	inputs := req.News.Copy()
	if name, given := req.Olds["name"]; given {
		inputs["name"] = name
		return inputs, nil
	}
	name, err := resource.NewUniqueName(req.RandomSeed, req.URN.Name()+"-", randomDigits, 0, nil)
	inputs["name"] = resource.NewProperty(name)
	return inputs, err
}

// state is what the stack remembers of a resource: its inputs and its outputs.
func (k kind) state(inputs resource.PropertyMap) (resource.PropertyMap, error) {
	state := inputs.Copy()
	if k.outputs == nil {
		return state, nil
	}
	outputs, err := k.outputs(inputs)
	for name, value := range resource.NewPropertyMapFromMap(outputs) {
		state[name] = value
	}
	return state, err
}

// replaces reports whether a change of an input replaces the resource.
func (k kind) replaces(changed resource.PropertyPath, old, new resource.PropertyMap) bool {
	for _, name := range k.required() {
		if changed[0] == string(name) {
			return true
		}
	}
	for _, path := range k.replaceOn {
		fixed, err := resource.ParsePropertyPath(path)
		if err != nil {
			panic(err) // a mistake in this package
		}
		// A change reaches an input from above, too: a whole block that comes,
		// goes or is not known yet.
		if !fixed.Contains(changed) && !changed.Contains(fixed) {
			continue
		}
		if k.inPlace == nil || !k.inPlace(path, old, new) {
			return true
		}
	}
	return false
}

// expand puts the inputs into a template such as that of an identifier.
func expand(template string, inputs resource.PropertyMap) string {
	return os.Expand(template, func(name string) string { return text(inputs, name) })
}

// expandAll makes outputs out of a template each.
func expandAll(templates map[string]string) func(resource.PropertyMap) (map[string]any, error) {
	return func(inputs resource.PropertyMap) (map[string]any, error) {
		outputs := map[string]any{}
		for name, template := range templates {
			outputs[name] = expand(template, inputs)
		}
		return outputs, nil
	}
}
