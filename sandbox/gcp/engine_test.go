package gcp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/require"

	"persia/cmd/persia/recovery"
	"persia/config"
	"persia/infra/storage"
	"persia/stack"
	"persia/stack/effects"
)

// engine runs the program as Pulumi's engine does. The simulated Google Cloud creates Google
// Cloud's resources; engine only records all others.
type engine struct {
	simulated
	folder string
	// name is the stack's, dev if it is empty.
	name string

	mu sync.Mutex
	// order lists the resources in the order of their creation.
	order []resource.URN
	state map[resource.URN]known
	// objects are the resources outside of Google Cloud: objects in the cluster, and providers.
	objects map[resource.URN]inCluster
	// before are the objects before the last up.
	before map[resource.URN]inCluster
	// did lists the changes that an up made in Google Cloud.
	did []string
	// steps lists the changes that it made to all resources of the stack.
	steps []step
	// seen are the resources that the program has registered. The up replaces the ones in
	// replaced.
	seen, replaced map[resource.URN]bool
	// gone are the resources that the up has deleted and will create again.
	gone map[resource.URN]bool
	// warned are the warnings of the program.
	warned []string
	// asked are the outputs that the next up reads.
	asked values
	// forbidden is the error of an up that would delete a protected resource, or nil.
	forbidden error
	// refused is a type of resource that nothing creates.
	refused string
}

// step is a change of one resource by an up.
type step struct {
	operation, kind, name string
	// paths are the properties that differ.
	paths []string
}

func (s step) String() string {
	return fmt.Sprintf("%s of %s %s %v", s.operation, s.kind, s.name, s.paths)
}

// note records a step.
func (e *engine) note(operation string, urn resource.URN, diff map[string]plugin.PropertyDiff) {
	paths := slices.Sorted(maps.Keys(diff))
	e.steps = append(e.steps, step{operation, string(urn.Type().Name()), urn.Name(), paths})
	if operation == "replace" {
		e.replaced[urn] = true
	}
	if urn.Type().Package() == "gcp" {
		text := operation + " " + string(urn.Type())
		if diff != nil {
			text += fmt.Sprint(" ", paths)
		}
		e.did = append(e.did, text)
	}
}

// known is a resource of Google Cloud's in the state of a stack.
type known struct {
	held
	retain, protect bool
	ignored         []string
	// of are the properties that come from other resources, by the resource.
	of map[resource.URN][]resource.PropertyKey
}

func (e *engine) NewResource(args pulumi.MockResourceArgs) (string, resource.PropertyMap, error) {
	urn := urnOf(args.TypeToken, args.Name)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[urn] = true
	if args.TypeToken == e.refused {
		return "", nil, fmt.Errorf("%s: googleapi: Error 429: Quota limit reached, rateLimitExceeded", urn)
	}
	if !strings.HasPrefix(args.TypeToken, "gcp:") {
		outputs, err := e.object(urn, args)
		return args.Name, outputs, err
	}
	now, err := e.step(urn, args)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", urn, err)
	}
	if _, before := e.state[urn]; !before {
		e.order = append(e.order, urn)
	}
	has := known{now, args.RegisterRPC.GetRetainOnDelete(), args.RegisterRPC.GetProtect(), args.RegisterRPC.GetIgnoreChanges(), map[resource.URN][]resource.PropertyKey{}}
	for property, on := range args.RegisterRPC.GetPropertyDependencies() {
		for _, of := range on.GetUrns() {
			from := urnOf(string(resource.URN(of).Type()), resource.URN(of).Name())
			has.of[from] = append(has.of[from], resource.PropertyKey(property))
		}
	}
	e.state[urn] = has
	return string(now.id), now.outputs, nil
}

func urnOf(token, name string) resource.URN {
	return resource.NewURN("dev", "persia", "", tokens.Type(token), name)
}

// step changes a resource to what the program wants.
func (e *engine) step(urn resource.URN, args pulumi.MockResourceArgs) (held, error) {
	ctx, old := e.Context(), e.state[urn]
	ignored := args.RegisterRPC.GetIgnoreChanges()
	given := unsecret(args.Inputs)
	if old.id != "" {
		given = keep(given, old.inputs, ignored)
	}
	checked, err := e.Check(ctx, plugin.CheckRequest{
		URN: urn, Olds: old.inputs, News: given, RandomSeed: []byte(urn + " is a seed that is long enough"),
	})
	if err == nil && len(checked.Failures) > 0 {
		err = errors.New(checked.Failures[0].Reason)
	}
	if err != nil {
		return held{}, err
	}
	inputs := checked.Properties
	if id := args.RegisterRPC.GetImportId(); id != "" && old.id == "" {
		e.note("import", urn, nil)
		read, err := e.Read(ctx, plugin.ReadRequest{URN: urn, ID: resource.ID(id)})
		return held{read.ID, inputs, read.Outputs}, err
	}
	if e.gone[urn] {
		e.note("replace", urn, nil)
		made, err := e.Create(ctx, plugin.CreateRequest{URN: urn, Properties: inputs})
		return held{made.ID, inputs, made.Properties}, err
	}
	if old.id == "" {
		e.note("create", urn, nil)
		made, err := e.Create(ctx, plugin.CreateRequest{URN: urn, Properties: inputs})
		return held{made.ID, inputs, made.Properties}, err
	}
	planned := e.unknown(inputs, args)
	request := plugin.DiffRequest{URN: urn, ID: old.id, OldInputs: old.inputs, OldOutputs: old.outputs, NewInputs: planned, IgnoreChanges: ignored}
	diff, err := e.Diff(ctx, request)
	if err == nil && !diff.Replace() && !planned.DeepEquals(inputs) {
		// It is not deleted along with what it depends on, and has it again later.
		request.NewInputs = inputs
		diff, err = e.Diff(ctx, request)
	}
	switch {
	case err != nil || diff.Changes == plugin.DiffNone:
		return held{old.id, inputs, old.outputs}, err
	case diff.Replace():
		// As in Pulumi's step generator: what loses its protection in the same update may be replaced,
		// unless that is because of something else. The program goes on, as in a preview.
		if old.protect && (args.RegisterRPC.GetProtect() || !planned.DeepEquals(inputs)) {
			e.forbidden = fmt.Errorf("unable to replace resource %q as it is currently marked for protection", urn)
			return old.held, nil
		}
		e.note("replace", urn, diff.DetailedDiff)
		if err := e.give(urn); err != nil {
			return held{}, err
		}
		made, err := e.Create(ctx, plugin.CreateRequest{URN: urn, Properties: inputs})
		return held{made.ID, inputs, made.Properties}, err
	default:
		e.note("update", urn, diff.DetailedDiff)
		updated, err := e.Update(ctx, plugin.UpdateRequest{URN: urn, ID: old.id, OldInputs: old.inputs, OldOutputs: old.outputs, NewInputs: inputs, IgnoreChanges: ignored})
		return held{old.id, inputs, updated.Properties}, err
	}
}

// give deletes a resource that is created again, and before it what cannot stay without it, the last
// first.
func (e *engine) give(urn resource.URN) error {
	for _, other := range slices.Backward(slices.Clone(e.order)) {
		has := e.state[other]
		properties := has.of[urn]
		if len(properties) == 0 || e.gone[other] {
			continue
		}
		planned := has.inputs.Copy()
		for _, property := range properties {
			planned[property] = unknownValue
		}
		diff, err := e.Diff(e.Context(), plugin.DiffRequest{URN: other, ID: has.id, OldInputs: has.inputs, OldOutputs: has.outputs, NewInputs: planned, IgnoreChanges: has.ignored})
		if err == nil && diff.Replace() {
			err = e.give(other)
		}
		if err != nil {
			return err
		}
	}
	e.gone[urn] = true
	if old := e.state[urn]; !old.retain {
		_, err := e.Delete(e.Context(), plugin.DeleteRequest{URN: urn, ID: old.id, Inputs: old.inputs, Outputs: old.outputs})
		return err
	}
	return nil
}

// unknown returns inputs in which the outputs of replaced resources are unknown. As in the engine,
// a resource that this replaces is deleted with them.
func (e *engine) unknown(inputs resource.PropertyMap, args pulumi.MockResourceArgs) resource.PropertyMap {
	planned := inputs.Copy()
	for property, on := range args.RegisterRPC.GetPropertyDependencies() {
		for _, of := range on.GetUrns() {
			if urn := resource.URN(of); e.replaced[urnOf(string(urn.Type()), urn.Name())] {
				planned[resource.PropertyKey(property)] = unknownValue
			}
		}
	}
	return planned
}

// keep puts the old values back where a program ignores changes, as the engine does.
func keep(inputs, old resource.PropertyMap, ignored []string) resource.PropertyMap {
	kept := resource.NewProperty(inputs.Copy())
	for _, text := range ignored {
		path, err := resource.ParsePropertyPath(text)
		if err != nil {
			continue
		}
		if value, had := path.Get(resource.NewProperty(old)); had {
			path.Set(kept, value)
		} else {
			path.Delete(kept)
		}
	}
	return kept.ObjectValue()
}

// unsecret shows secrets, which the engine does for a provider that takes none.
func unsecret(inputs resource.PropertyMap) resource.PropertyMap {
	return resource.NewPropertyMapFromMap(inputs.Mappable())
}

func (e *engine) Call(args pulumi.MockCallArgs) (resource.PropertyMap, error) {
	switch args.Token {
	case "pulumi:pulumi:readStackOutputs":
		return properties(values{"outputs": e.asked}), nil
	case "pulumi:pulumi:readStackResourceOutputs":
		if e.asked == nil && len(e.order) == 0 {
			return nil, errors.New("a stack without a state: Pulumi's engine crashes here")
		}
		return properties(values{"outputs": e.resources()}), nil
	}
	resp, err := e.Invoke(e.Context(), plugin.InvokeRequest{Tok: tokens.ModuleMember(args.Token), Args: args.Args})
	return resp.Properties, err
}

// resources returns the outputs of the stack's resources, as the engine passes them to the program.
func (e *engine) resources() values {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := values{}
	for urn, has := range e.state {
		found[string(urn)] = values{"outputs": has.outputs.Mappable()}
	}
	for urn, has := range e.objects {
		if has.component == "persia:storage:Volume" {
			urn = resource.NewURN("dev", "persia", has.component, urn.Type(), urn.Name())
		}
		found[string(urn)] = values{"outputs": has.outputs.Mappable()}
	}
	return found
}

// up runs the program, and returns the changes.
func (e *engine) up(configuration map[string]string) []string {
	e.Helper()
	require.NoError(e, e.tryUp(configuration))
	e.removed()
	// Mocks see no outputs of a stack: these are written as they are in the states of stacks.
	cfg := e.load(configuration)
	e.asked = values{"clusterName": cfg.Cluster.Name, storage.OutputName: e.left()}
	e.recoverable()
	slices.Sort(e.did)
	return e.did
}

// recoverable checks that `persia recover` knows the identifier of each resource that cannot be created
// twice.
func (e *engine) recoverable() {
	e.Helper()
	for urn, has := range e.state {
		if kind := string(urn.Type()); !strings.HasSuffix(kind, "Member") && !strings.HasSuffix(kind, "ServiceIdentity") {
			require.Equal(e, string(has.id), recovery.ID(kind, has.inputs.Mappable()))
		}
	}
}

// load reads a stack file.
func (e *engine) load(configuration map[string]string) *config.Stack {
	e.Helper()
	cfg, err := config.Load(func(key string) (string, bool) { value, given := configuration[key]; return value, given }, os.DirFS(e.folder))
	require.NoError(e, err)
	return cfg
}

// left returns the Filestore instances in the simulated cloud that are not the stack's any more.
func (e *engine) left() []any {
	e.Helper()
	var records []any
	instances, err := e.cloud.List("file.instance")
	require.NoError(e, err)
	for name := range instances {
		// projects/P/locations/L/instances/N
		parts := strings.Split(name, "/")
		if _, has := e.state[urnOf(instanceType, parts[3]+"/"+parts[5])]; !has {
			records = append(records, values{"source": values{"filestore": values{"instance": parts[5], "location": parts[3], "create": values{}}}})
		}
	}
	return records
}

// tryUp runs the program.
func (e *engine) tryUp(configuration map[string]string) error {
	e.did, e.steps, e.warned, e.forbidden = nil, nil, nil, nil
	e.seen, e.replaced, e.gone = map[resource.URN]bool{}, map[resource.URN]bool{}, map[resource.URN]bool{}
	e.before = maps.Clone(e.objects)
	e.client.ClearActions()
	ctx, err := pulumi.NewContext(e.Context(), pulumi.RunInfo{
		Project: "persia", Stack: cmp.Or(e.name, "dev"), Config: configuration, RootDirectory: e.folder, Mocks: e,
		ConfigSecretKeys: secretKeys(configuration),
	})
	if err != nil {
		return err
	}
	err = pulumi.RunWithContext(ctx, func(ctx *pulumi.Context) error {
		ctx.Log = warnings{ctx.Log, e}
		return stack.Deploy(ctx)
	})
	if err != nil {
		return err
	}
	for urn, old := range e.state {
		if old.protect && !e.seen[urn] {
			e.forbidden = fmt.Errorf("resource %q cannot be deleted because it is protected", urn)
		}
	}
	return e.forbidden
}

// warnings keeps the warnings of the program.
type warnings struct {
	pulumi.Log
	engine *engine
}

func (w warnings) Warn(text string, _ *pulumi.LogArgs) error {
	w.engine.warned = append(w.engine.warned, text)
	return nil
}

// effects are the effects that the last up announced.
func (e *engine) effects() []string {
	for _, text := range e.warned {
		if said, ok := strings.CutPrefix(text, effects.Title+"\n\n- "); ok {
			return strings.Split(said, "\n- ")
		}
	}
	return nil
}

// secretKeys are the keys of a stack file that have passwords.
func secretKeys(configuration map[string]string) []string {
	var keys []string
	for key, text := range configuration {
		if strings.Contains(strings.ToLower(text), `password":`) {
			keys = append(keys, key)
		}
	}
	return keys
}

// removed deletes the resources that the program has not registered, except retained ones.
func (e *engine) removed() {
	e.Helper()
	for _, urn := range slices.Backward(slices.Clone(e.order)) {
		old := e.state[urn]
		if e.seen[urn] {
			continue
		}
		if old.retain {
			e.note("keep", urn, nil)
		} else {
			e.note("delete", urn, nil)
			_, err := e.Delete(e.Context(), plugin.DeleteRequest{URN: urn, ID: old.id, Inputs: old.inputs, Outputs: old.outputs})
			require.NoError(e, err)
		}
		delete(e.state, urn)
		e.order = slices.DeleteFunc(e.order, func(other resource.URN) bool { return other == urn })
	}
	for urn := range e.objects {
		if !e.seen[urn] {
			e.note("delete", urn, nil)
			delete(e.objects, urn)
		}
	}
}

// refresh reads the current state, and returns the properties that had drifted. Like the engine, it
// also compares what the program asked for with what it reads, as an up would.
func (e *engine) refresh() []string {
	e.Helper()
	var drift []string
	for urn, old := range e.state {
		read, err := e.Read(e.Context(), plugin.ReadRequest{URN: urn, ID: old.id, Inputs: old.inputs, State: old.outputs})
		require.NoError(e, err)
		require.NotNil(e, read.Outputs, "%s is gone", urn)
		if diff := old.outputs.Diff(read.Outputs); diff != nil {
			for path := range plugin.NewDetailedDiffFromObjectDiff(diff, false) {
				drift = append(drift, fmt.Sprint(urn.Name(), " ", path))
			}
		}
		diff, err := e.Diff(e.Context(), plugin.DiffRequest{URN: urn, ID: old.id, OldInputs: read.Inputs, OldOutputs: read.Outputs, NewInputs: old.inputs, IgnoreChanges: old.ignored})
		require.NoError(e, err)
		for path := range diff.DetailedDiff {
			drift = append(drift, fmt.Sprint(urn.Name(), " ", path))
		}
		old.held = held{old.id, read.Inputs, read.Outputs}
		e.state[urn] = old
	}
	return drift
}

// destroy deletes the resources of the stack, except those that outlive it.
func (e *engine) destroy() {
	e.Helper()
	for _, urn := range slices.Backward(e.order) {
		if old := e.state[urn]; !old.retain {
			_, err := e.Delete(e.Context(), plugin.DeleteRequest{URN: urn, ID: old.id, Inputs: old.inputs, Outputs: old.outputs})
			require.NoError(e, err)
		}
	}
}
