package kubeprovider

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"persia/sandbox/files"
)

//go:embed replaceon.yaml
var replaceOnYAML []byte

// replaceOn has, by kind, the fields for whose change an object is replaced.
var replaceOn = files.Embedded[map[string][]string]("replaceon.yaml", replaceOnYAML)

// Diff compares the new inputs with the object in the state, as far as the old inputs speak of it. It asks the cluster
// nothing: what changed there is seen after a refresh. A field that the program sends and the API server answers
// otherwise differs in every diff.
func (p *Provider) Diff(_ context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	before, after, err := compared(req)
	if err != nil {
		return plugin.DiffResponse{}, fmt.Errorf("%s: %w", req.URN, err)
	}
	kind := schema.FromAPIVersionAndKind(after["apiVersion"].StringValue(), after["kind"].StringValue()).GroupKind()
	replaced := append([]string{"metadata.name", "metadata.namespace"}, replaceOn()[kind.String()]...)
	paths, err := changes(before, after, req.IgnoreChanges, replaced)
	if err != nil {
		return plugin.DiffResponse{}, fmt.Errorf("%s: %w", req.URN, err)
	}
	if len(paths) == 0 {
		return plugin.DiffResponse{Changes: plugin.DiffNone}, nil
	}
	resp := plugin.DiffResponse{Changes: plugin.DiffSome, DetailedDiff: paths}
	// An object with another name is another object: both can exist at once.
	_, renamed := paths["metadata.name"]
	_, moved := paths["metadata.namespace"]
	resp.DeleteBeforeReplace = resp.Replace() && !renamed && !moved
	return resp, nil
}

// compared returns the two sides of the official provider's comparison: the object in the state,
// pruned to the old inputs, and the new inputs, both normalized.
func compared(req plugin.DiffRequest) (before, after resource.PropertyMap, err error) {
	live, err := objectOf(req.OldOutputs)
	if err != nil {
		return nil, nil, err
	}
	obj, err := objectOf(req.OldInputs)
	if err != nil {
		return nil, nil, err
	}
	before = liveLike(live, obj)
	obj, err = objectOf(req.NewInputs)
	if errors.Is(err, errUnknown) {
		return before, req.NewInputs, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return before, resource.NewPropertyMapFromMap(normalize(obj).Object), nil
}

// changes are the paths that differ, without the ignored ones. A change at, above or below a path in
// replaced replaces the object. An unknown value above such a path does not: the official provider
// looks only inside of known values (convertPatchToDiff in provider/pkg/provider/provider.go).
func changes(before, after resource.PropertyMap, ignored, replaced []string) (map[string]plugin.PropertyDiff, error) {
	paths := plugin.NewDetailedDiffFromObjectDiff(before.Diff(after), false)
	for path, diff := range paths {
		changed, err := resource.ParsePropertyPath(path)
		if err != nil {
			return nil, fmt.Errorf("path of a change %q: %w", path, err)
		}
		for _, text := range ignored {
			ignore, err := resource.ParsePropertyPath(text)
			if err != nil {
				return nil, fmt.Errorf("ignoreChanges %q: %w", text, err)
			}
			if ignore.Contains(changed) {
				delete(paths, path)
			}
		}
		if _, left := paths[path]; !left {
			continue
		}
		value, _ := changed.Get(resource.NewProperty(after))
		if slices.ContainsFunc(replaced, func(p string) bool { return within(path, p) || !value.IsComputed() && within(p, path) }) {
			diff = diff.ToReplace()
		}
		// What the program no longer says is to be shown as it said it.
		diff.InputDiff = diff.Kind == plugin.DiffDelete || diff.Kind == plugin.DiffDeleteReplace
		paths[path] = diff
	}
	return paths, nil
}

// within says whether a property path is parent or below it.
func within(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// keepIgnored returns obj with the live value of every property that changes are ignored in.
func keepIgnored(obj, live *unstructured.Unstructured, ignored []string) (*unstructured.Unstructured, error) {
	kept, now := resource.NewPropertyMapFromMap(obj.Object), resource.NewPropertyMapFromMap(live.Object)
	for _, text := range ignored {
		path, err := resource.ParsePropertyPath(text)
		if err != nil {
			return nil, fmt.Errorf("ignoreChanges %q: %w", text, err)
		}
		path.Reset(now, kept)
	}
	return objectOf(kept)
}
