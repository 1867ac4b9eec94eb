package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Diff lets the API server decide: the live object is compared with what a dry
// run of applying the new inputs makes of it. Where that cannot be tried, as
// with values that are not known yet, old and new inputs are compared.
func (p *Provider) Diff(ctx context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	c, config := p.state()
	req.OldInputs, req.NewInputs = reveal(req.OldInputs), reveal(req.NewInputs)
	changes := changesOf(req.OldInputs, req.NewInputs)
	if changes.markReplaced(identityChanges(req, c)...) {
		// Another name is another object: both can be there at once.
		return changes.result(), nil
	}
	if changes.markReplaced(immutableFields(req.NewInputs, config)...) {
		changes.deleteFirst = true
		return changes.result(), nil
	}
	if c == nil {
		return changes.result(), nil
	}
	obj, err := objectOf(req.NewInputs)
	if errors.Is(err, errUnknown) {
		return changes.result(), nil
	}
	if err != nil {
		return plugin.DiffResponse{}, fmt.Errorf("%s: %w", req.URN, err)
	}
	r, err := c.bind(obj)
	if meta.IsNoMatchError(err) {
		return changes.result(), nil
	}
	if err != nil {
		return plugin.DiffResponse{}, fmt.Errorf("comparing %s: %w", describe(obj), c.explain(err))
	}

	live, after, err := dryRun(ctx, r, obj, req.IgnoreChanges)
	switch {
	case live != nil && live.GetDeletionTimestamp() != nil:
		p.log.Warn(ctx, req.URN, describe(obj)+" is being deleted; an update makes it again")
		return changes.orAll(req.NewInputs).result(), nil
	case live != nil && released(live):
		p.log.Warn(ctx, req.URN, describe(obj)+" is Released: its claim is gone, and it never binds to another; "+
			"it is replaced, and what it points at stays as it is")
		return changes.orAll(req.NewInputs).replaceAll().result(), nil
	case live == nil && apierrors.IsNotFound(err):
		p.log.Warn(ctx, req.URN, describe(obj)+" is not in the cluster any more; an update makes it again")
		return changes.orAll(req.NewInputs).result(), nil
	case apierrors.IsInvalid(err):
		if objection := creatable(ctx, r, obj); objection != nil {
			return plugin.DiffResponse{}, fmt.Errorf("%s: the API server refuses it: %w", describe(obj), err)
		}
		return changes.orCauses(err).replaceAll().result(), nil
	case apierrors.IsNotFound(err):
		return changes.result(), nil
	case err != nil:
		return plugin.DiffResponse{}, fmt.Errorf("comparing %s: %w", describe(obj), c.explain(err))
	case same(live, after):
		return plugin.DiffResponse{Changes: plugin.DiffNone}, nil
	}
	if !changes.some {
		// The engine shows the state and the inputs, which agree: it cannot show
		// what is in the cluster.
		changes = driftOf(live, after)
		p.log.Warn(ctx, req.URN, fmt.Sprintf("%s was changed in the cluster; an update sets back %s",
			describe(obj), strings.Join(slices.Sorted(maps.Keys(changes.paths)), ", ")))
	}
	return changes.result(), nil
}

// released reports whether obj is a volume whose claim was deleted.
func released(obj *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
	return obj.GetAPIVersion() == "v1" && obj.GetKind() == "PersistentVolume" && phase == "Released"
}

// dryRun returns an object as it is and as it would be after applying obj. It
// returns no live object only if there is none.
func dryRun(
	ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured, ignored []string,
) (live, after *unstructured.Unstructured, err error) {
	// A controller may write between the two requests. Then they are not of the
	// same version, and the difference would be the controller's.
	const attempts = 5
	for range attempts {
		if live, err = r.Get(ctx, obj.GetName(), metav1.GetOptions{}); err != nil {
			return nil, nil, err
		}
		kept, err := keepIgnored(obj, live, ignored)
		if err != nil {
			return live, nil, err
		}
		if after, err = apply(ctx, r, kept, true); err != nil {
			return live, nil, err
		}
		if live.GetResourceVersion() == after.GetResourceVersion() {
			break
		}
	}
	return live, after, nil
}

// changes are the paths of a resource that differ.
type changes struct {
	some        bool // there is a difference, whatever paths is
	paths       map[string]plugin.PropertyDiff
	deleteFirst bool
}

func changesOf(before, after resource.PropertyMap) *changes {
	paths := plugin.NewDetailedDiffFromObjectDiff(before.Diff(after), true)
	return &changes{some: len(paths) > 0, paths: paths}
}

// driftOf are the changes that an update would make to a live object.
func driftOf(live, after *unstructured.Unstructured) *changes {
	from := resource.NewPropertyMapFromMap(contentOf(live))
	to := resource.NewPropertyMapFromMap(contentOf(after))
	return &changes{some: true, paths: plugin.NewDetailedDiffFromObjectDiff(from.Diff(to), false)}
}

func (c *changes) result() plugin.DiffResponse {
	if !c.some {
		return plugin.DiffResponse{Changes: plugin.DiffNone}
	}
	return plugin.DiffResponse{
		Changes: plugin.DiffSome, DetailedDiff: c.paths, DeleteBeforeReplace: c.deleteFirst,
	}
}

// markReplaced makes changes at or below the given paths replace the object,
// and says whether there are any.
func (c *changes) markReplaced(paths ...string) bool {
	marked := false
	for path, diff := range c.paths {
		if slices.ContainsFunc(paths, func(p string) bool { return within(path, p) }) {
			c.paths[path] = diff.ToReplace()
			marked = true
		}
	}
	return marked
}

// within says whether a property path is parent or below it.
func within(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// replaceAll makes every change replace the object, which is deleted first: its
// name is taken until then.
func (c *changes) replaceAll() *changes {
	for path, diff := range c.paths {
		c.paths[path] = diff.ToReplace()
	}
	c.deleteFirst = true
	return c
}

// orAll makes everything a change if the inputs are the same.
func (c *changes) orAll(inputs resource.PropertyMap) *changes {
	c.some = true
	if len(c.paths) == 0 {
		for key := range inputs {
			if key != "apiVersion" && key != "kind" {
				c.paths[string(key)] = plugin.PropertyDiff{Kind: plugin.DiffUpdate}
			}
		}
	}
	return c
}

// orCauses takes what the API server objects to for the change if the inputs
// are the same: the object was made anew by someone else.
func (c *changes) orCauses(err error) *changes {
	c.some = true
	if len(c.paths) > 0 {
		return c
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			field, _, _ := strings.Cut(cause.Field, ".")
			c.paths[field] = plugin.PropertyDiff{Kind: plugin.DiffUpdate}
		}
	}
	return c
}

// identityChanges lists the paths in which old and new inputs are of different
// objects. Another version of the same kind, or a default that is now written
// out, is not another object.
func identityChanges(req plugin.DiffRequest, c *client) []string {
	type identity struct{ group, kind, name, namespace string }
	read := func(inputs resource.PropertyMap) identity {
		text := func(m resource.PropertyMap, key resource.PropertyKey) string {
			if v := m[key]; v.IsString() {
				return v.StringValue()
			}
			return ""
		}
		metadata := resource.PropertyMap{}
		if v := inputs["metadata"]; v.IsObject() {
			metadata = v.ObjectValue()
		}
		// An apiVersion that does not parse has no group, and the API server
		// will say so.
		gv, _ := schema.ParseGroupVersion(text(inputs, "apiVersion"))
		id := identity{gv.Group, text(inputs, "kind"), text(metadata, "name"), text(metadata, "namespace")}
		if id.namespace == "" && c != nil {
			id.namespace = c.namespace
		}
		return id
	}
	before, after := read(req.OldInputs), read(req.NewInputs)
	var paths []string
	if before.group != after.group {
		paths = append(paths, "apiVersion")
	}
	if before.kind != after.kind {
		paths = append(paths, "kind")
	}
	if after.name != "" && before.name != after.name {
		paths = append(paths, "metadata.name", "metadata")
	}
	if before.namespace != after.namespace {
		paths = append(paths, "metadata.namespace")
	}
	return paths
}

// immutableFields lists the fields that the API server lets change and the
// official provider replaces an object for.
func immutableFields(inputs resource.PropertyMap, config config) []string {
	if v := inputs["apiVersion"]; !v.IsString() || v.StringValue() != "v1" {
		return nil
	}
	kind := inputs["kind"]
	switch {
	case !kind.IsString():
		return nil
	case kind.StringValue() == "ConfigMap" && !config.configMapMutable:
		return []string{"data", "binaryData"}
	case kind.StringValue() == "Secret" && !config.secretMutable:
		return []string{"type", "data", "stringData"}
	}
	return nil
}
