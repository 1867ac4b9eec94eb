package terraform

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	shim "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// Diff plans a change. The Terraform plugin SDK decides whether the resource changes, and whether the
// change replaces it. The paths name the properties that differ between state and plan.
func (p *Provider) Diff(ctx context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	token := req.URN.Type()
	planned, err := p.plan(ctx, token, req.ID, req.OldOutputs, req.NewInputs, req.IgnoreChanges)
	if err != nil {
		return plugin.DiffResponse{}, err
	}
	if planned.diff.HasNoChanges() {
		return plugin.DiffResult{Changes: plugin.DiffNone}, nil
	}
	result := plugin.DiffResult{Changes: plugin.DiffSome, DetailedDiff: map[string]plugin.PropertyDiff{}}
	proposed, err := planned.diff.ProposedState(p.shim.ResourcesMap().Get(p.names[token]), planned.prior)
	if err != nil {
		return plugin.DiffResponse{}, err
	}
	future, err := p.properties(token, proposed)
	if err != nil {
		return plugin.DiffResponse{}, err
	}
	before, err := p.properties(token, planned.prior)
	if err != nil {
		return plugin.DiffResponse{}, err
	}
	replaced := map[string]bool{}
	for path, change := range plugin.NewDetailedDiffFromObjectDiff(before.Diff(future), false) {
		parsed, err := resource.ParsePropertyPath(path)
		if err != nil {
			return plugin.DiffResponse{}, fmt.Errorf("path %q of a change: %w", path, err)
		}
		if requiresNew(p.fields(token), planned.diff, parsed) {
			change.Kind = change.Kind.AsReplace()
			replaced[parsed[0].(string)] = true
		}
		result.DetailedDiff[path] = change
	}
	if planned.diff.RequiresNew() {
		// The element of a set is at another key than its place in the list.
		if len(replaced) == 0 {
			for path, change := range result.DetailedDiff {
				change.Kind = change.Kind.AsReplace()
				result.DetailedDiff[path] = change
			}
			replaced["__meta"] = true
		}
		for key := range replaced {
			result.ReplaceKeys = append(result.ReplaceKeys, resource.PropertyKey(key))
		}
		// Two resources cannot share the name that the program gives. An entry of a
		// policy has none.
		result.DeleteBeforeReplace = req.NewInputs.HasValue("name")
	}
	return result, nil
}

// requiresNew reports whether the SDK replaces the resource for a change at a path
// or around it.
func requiresNew(fields map[string]*schema.Schema, diff shim.InstanceDiff, path resource.PropertyPath) bool {
	for length := 1; length <= len(path); length++ {
		key, _ := attribute(fields, path[:length])
		for _, suffix := range []string{"", ".#", ".%"} {
			if change := diff.Attribute(key + suffix); change != nil && change.RequiresNew {
				return true
			}
		}
	}
	return false
}

// attribute returns the key that the SDK has a property at, and its schema. Elements of
// sets are not found.
func attribute(fields map[string]*schema.Schema, path resource.PropertyPath) (key string, s *schema.Schema) {
	var keys []string
	for i, step := range path {
		switch step := step.(type) {
		case int:
			keys = append(keys, fmt.Sprint(step))
		case string:
			field := terraformName(fields, step)
			if field == "" {
				// A key of a map.
				keys = append(keys, step)
				continue
			}
			s = fields[field]
			keys = append(keys, field)
			fields = nested(s)
			if fields != nil && !isList(s) && i < len(path)-1 {
				keys = append(keys, "0")
			}
		}
	}
	return strings.Join(keys, "."), s
}

// ignoredKeys returns where the SDK has the properties that a program ignores.
func ignoredKeys(fields map[string]*schema.Schema, ignored []string) map[string]struct{} {
	keys := map[string]struct{}{}
	for _, text := range ignored {
		if path, err := resource.ParsePropertyPath(text); err == nil {
			key, _ := attribute(fields, path)
			keys[key] = struct{}{}
		}
	}
	return keys
}
