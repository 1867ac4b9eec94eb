package gcp

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/internal/testkit"
	"persia/sandbox/kubeprovider"
)

// inCluster is an object in the cluster, or the provider of such objects.
type inCluster struct {
	held
	provider resource.URN
	// trigger is a value that replaces the object when it changes, or nil.
	trigger any
	// component is the type of the component that the object is a part of, or "".
	component tokens.Type
}

// object simulates an object in the cluster, which the program shapes and the Kubernetes provider changes.
func (e *engine) object(urn resource.URN, args pulumi.MockResourceArgs) (resource.PropertyMap, error) {
	now := inCluster{held{resource.ID(args.Name), unsecret(args.Inputs), served(args)}, providerOf(args), args.RegisterRPC.GetReplacementTrigger().AsInterface(), resource.URN(args.RegisterRPC.GetParent()).Type()}
	old, before := e.objects[urn]
	e.objects[urn] = now
	provider := kubeprovider.New("4.30.0", "")
	switch {
	case !args.Custom:
	case args.TypeToken == "pulumi:index:Stash" && before:
		now.outputs["output"] = old.outputs["output"]
	case !before:
		e.note("create", urn, nil)
	case strings.HasPrefix(args.TypeToken, "pulumi:providers:"):
		request := plugin.DiffConfigRequest{URN: urn, OldInputs: old.inputs, NewInputs: now.inputs}
		diff, err := provider.DiffConfig(e.Context(), request)
		if args.TypeToken == "pulumi:providers:gcp" {
			diff, err = e.DiffConfig(e.Context(), request)
		}
		if err != nil {
			return nil, err
		}
		e.plan(urn, diff)
	case old.provider != now.provider || e.replaced[now.provider]:
		// Another provider may be of another cluster.
		e.note("replace", urn, nil)
	case !reflect.DeepEqual(old.trigger, now.trigger), slices.ContainsFunc(args.RegisterRPC.GetReplaceWith(), e.replaces):
		e.note("replace", urn, nil)
	default:
		diff, err := provider.Diff(e.Context(), plugin.DiffRequest{
			URN: urn, Type: urn.Type(), ID: old.id, OldInputs: old.inputs, OldOutputs: old.outputs, NewInputs: now.inputs,
			IgnoreChanges: args.RegisterRPC.GetIgnoreChanges(),
		})
		if err != nil {
			return nil, err
		}
		if diff, err = replacedOn(args.RegisterRPC.GetReplaceOnChanges(), diff); err != nil {
			return nil, err
		}
		e.plan(urn, diff)
	}
	return now.outputs, nil
}

// replaces reports whether the up replaces a resource.
func (e *engine) replaces(urn string) bool {
	of := resource.URN(urn)
	return e.replaced[urnOf(string(of.Type()), of.Name())]
}

// replacedOn makes a difference at or below one of the paths a replacement, as the engine does.
func replacedOn(paths []string, diff plugin.DiffResponse) (plugin.DiffResponse, error) {
	for _, text := range paths {
		path, err := resource.ParsePropertyPath(text)
		if err != nil {
			return diff, err
		}
		for changed := range diff.DetailedDiff {
			at, err := resource.ParsePropertyPath(changed)
			if err != nil {
				return diff, err
			}
			if path.Contains(at) {
				diff.ReplaceKeys = append(diff.ReplaceKeys, resource.PropertyKey(changed))
			}
		}
	}
	return diff, nil
}

// plan records the operation that a difference leads to.
func (e *engine) plan(urn resource.URN, diff plugin.DiffResponse) {
	switch {
	case diff.Changes != plugin.DiffSome:
	case diff.Replace():
		e.note("replace", urn, diff.DetailedDiff)
	default:
		e.note("update", urn, diff.DetailedDiff)
	}
}

// providerOf returns the provider of a resource.
func providerOf(args pulumi.MockResourceArgs) resource.URN {
	of := resource.URN(args.Provider[:max(0, strings.LastIndex(args.Provider, "::"))])
	if of == "" {
		return ""
	}
	return urnOf(string(of.Type()), of.Name())
}

// served returns the outputs of objects in the cluster. Other data is another version of a Secret or a ConfigMap.
func served(args pulumi.MockResourceArgs) resource.PropertyMap {
	args.Inputs = unsecret(args.Inputs)
	outputs := testkit.Outputs(args)
	if data, has := outputs["data"]; has {
		content := fnv.New64a()
		fmt.Fprint(content, data.Mappable())
		outputs["metadata"].ObjectValue()["resourceVersion"] = resource.NewProperty(fmt.Sprint(content.Sum64()))
	}
	return outputs
}
