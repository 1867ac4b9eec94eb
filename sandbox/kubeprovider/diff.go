package kubeprovider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"persia/sandbox/kubeprovider/object"
)

// Diff compares the new inputs with the object in the state, as far as the old
// inputs speak of it. It asks the cluster nothing: what changed there is seen
// after a refresh. A field that the program sends and the API server answers
// otherwise differs in every diff.
func (p *Provider) Diff(_ context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	_, config := p.state()
	before, after, err := compared(req)
	if err != nil {
		return plugin.DiffResponse{}, fmt.Errorf("%s: %w", req.URN, err)
	}
	for _, inputs := range []resource.PropertyMap{before, after} {
		nameNamespace(inputs, namespaceOf(req.OldOutputs), config.namespace)
	}
	changes := changesOf(before, after)
	if err := changes.ignore(req.IgnoreChanges); err != nil {
		return plugin.DiffResponse{}, fmt.Errorf("%s: %w", req.URN, err)
	}
	changes.markReplaced(after, replacing(after, config)...)
	if groupOf(before) != groupOf(after) {
		changes.markReplaced(after, "apiVersion")
	}
	// An object with another name is another object: both can exist at once.
	changes.deleteFirst = changes.replaces() && sameName(before, after)
	return changes.result(), nil
}

// compared returns the two sides of the official provider's comparison: the object in the state,
// pruned to the old inputs, and the new inputs, both normalized.
func compared(req plugin.DiffRequest) (before, after resource.PropertyMap, err error) {
	live, err := object.Of(req.OldOutputs)
	if err != nil {
		return nil, nil, err
	}
	before, err = object.LiveLike(live, req.OldInputs)
	if err != nil {
		return nil, nil, err
	}
	obj, err := object.Of(req.NewInputs)
	if errors.Is(err, object.ErrUnknown) {
		return before, dropNulls(object.Reveal(req.NewInputs)), nil
	}
	if err != nil {
		return nil, nil, err
	}
	return before, resource.NewPropertyMapFromMap(object.Normalize(obj).Object), nil
}

// dropNulls removes the fields that the program sets to null.
func dropNulls(properties resource.PropertyMap) resource.PropertyMap {
	out := resource.PropertyMap{}
	for key, value := range properties {
		switch {
		case value.IsNull():
		case value.IsObject():
			out[key] = resource.NewProperty(dropNulls(value.ObjectValue()))
		default:
			out[key] = value
		}
	}
	return out
}

// namespaceOf returns the namespace of the object in the state, empty if it has none.
func namespaceOf(outputs resource.PropertyMap) string {
	return metadataText(object.Reveal(outputs), "namespace")
}

// nameNamespace writes out the namespace that is meant by none, for an object
// that has one.
func nameNamespace(inputs resource.PropertyMap, namespace, fallback string) {
	metadata := inputs["metadata"]
	if namespace == "" || !metadata.IsObject() || !metadata.ObjectValue()["namespace"].IsNull() {
		return
	}
	if fallback == "" {
		fallback = "default"
	}
	metadata.ObjectValue()["namespace"] = resource.NewProperty(fallback)
}

func metadataText(inputs resource.PropertyMap, key resource.PropertyKey) string {
	if metadata := inputs["metadata"]; metadata.IsObject() {
		if v := metadata.ObjectValue()[key]; v.IsString() {
			return v.StringValue()
		}
	}
	return ""
}

func sameName(a, b resource.PropertyMap) bool {
	return metadataText(a, "name") == metadataText(b, "name") &&
		metadataText(a, "namespace") == metadataText(b, "namespace")
}

func groupOf(inputs resource.PropertyMap) string {
	if v := inputs["apiVersion"]; v.IsString() {
		// An apiVersion that does not parse has no group, and the API server says so.
		gv, _ := schema.ParseGroupVersion(v.StringValue())
		return gv.Group
	}
	return ""
}

// changes are the paths of a resource that differ.
type changes struct {
	paths       map[string]plugin.PropertyDiff
	deleteFirst bool
}

func changesOf(before, after resource.PropertyMap) *changes {
	paths := plugin.NewDetailedDiffFromObjectDiff(before.Diff(after), false)
	for path, diff := range paths {
		// What the program no longer says is to be shown as it said it.
		diff.InputDiff = diff.Kind == plugin.DiffDelete
		paths[path] = diff
	}
	return &changes{paths: paths}
}

// ignore drops the changes at and below the given paths.
func (c *changes) ignore(ignored []string) error {
	for _, text := range ignored {
		ignore, err := resource.ParsePropertyPath(text)
		if err != nil {
			return fmt.Errorf("ignoreChanges %q: %w", text, err)
		}
		for path := range c.paths {
			parsed, err := resource.ParsePropertyPath(path)
			if err != nil {
				return fmt.Errorf("path of a change %q: %w", path, err)
			}
			if ignore.Contains(parsed) {
				delete(c.paths, path)
			}
		}
	}
	return nil
}

func (c *changes) result() plugin.DiffResponse {
	if len(c.paths) == 0 {
		return plugin.DiffResponse{Changes: plugin.DiffNone}
	}
	return plugin.DiffResponse{
		Changes: plugin.DiffSome, DetailedDiff: c.paths, DeleteBeforeReplace: c.deleteFirst,
	}
}

// markReplaced makes changes at, above or below the given paths replace the object. An unknown
// value above such a path does not: the official provider looks only inside of known values
// (convertPatchToDiff in provider/pkg/provider/provider.go).
func (c *changes) markReplaced(after resource.PropertyMap, paths ...string) {
	for path, diff := range c.paths {
		known := !unknownAt(after, path)
		if slices.ContainsFunc(paths, func(p string) bool { return within(path, p) || known && within(p, path) }) {
			c.paths[path] = diff.ToReplace()
		}
	}
}

// unknownAt says whether the value at a path is not known yet.
func unknownAt(properties resource.PropertyMap, path string) bool {
	parsed, err := resource.ParsePropertyPath(path)
	if err != nil {
		return false
	}
	value, found := parsed.Get(resource.NewProperty(properties))
	return found && value.IsComputed()
}

func (c *changes) replaces() bool {
	for _, diff := range c.paths {
		if diff.Kind.IsReplace() {
			return true
		}
	}
	return false
}

// within says whether a property path is parent or below it.
func within(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// keepIgnored returns obj with the live value of every property that changes
// are ignored in.
func keepIgnored(
	obj, live *unstructured.Unstructured, ignored []string,
) (*unstructured.Unstructured, error) {
	kept, now := resource.NewPropertyMapFromMap(obj.Object), resource.NewPropertyMapFromMap(live.Object)
	for _, text := range ignored {
		path, err := resource.ParsePropertyPath(text)
		if err != nil {
			return nil, fmt.Errorf("ignoreChanges %q: %w", text, err)
		}
		path.Reset(now, kept)
	}
	content, err := object.Plain(kept)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: content}, nil
}
