package gcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	fakeextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"persia/config"
	"persia/config/input"
	"persia/internal/recovery"
	"persia/internal/testkit"
	"persia/sandbox/gcp/gke"
	"persia/sandbox/gcp/google"
	"persia/stack"
	"persia/stack/effects"
)

const (
	clusterType  = "gcp:container/cluster:Cluster"
	nodePoolType = "gcp:container/nodePool:NodePool"
	instanceType = "gcp:filestore/instance:Instance"
	bucketType   = "gcp:storage/bucket:Bucket"
)

type values = map[string]any

// unknownValue is a value that a preview does not know.
var unknownValue = resource.MakeComputed(resource.NewStringProperty(""))

// engine runs the program as Pulumi's engine does. The simulated Google Cloud, with client-go's fake as
// its control plane, creates Google Cloud's resources; engine only records all others.
type engine struct {
	*testing.T
	*Provider
	cloud  *google.Cloud
	client *fake.Clientset
	folder string
	// name is the stack's.
	name string

	mu sync.Mutex
	// order lists the resources in the order of their creation.
	order []resource.URN
	state map[resource.URN]known
	// objects are the resources outside of Google Cloud: objects in the cluster, and providers.
	objects map[resource.URN]inCluster
	// before are the objects before the last up.
	before map[resource.URN]inCluster
	// steps lists the changes that an up made.
	steps []step
	// seen are the resources that the program has registered. The up replaces the ones in replaced.
	seen, replaced map[resource.URN]bool
	// warned are the warnings of the program.
	warned []string
	// announced are the effects that the program announces.
	announced []effects.Effect
	// asked are the outputs that the next up reads.
	asked values
	// refused is a type of resource that nothing creates.
	refused string
}

func newStack(t *testing.T, folder string) *engine {
	t.Helper()
	absolute := testkit.Must(filepath.Abs(folder))(t)
	client, definitions := fake.NewSimpleClientset(), newExtensions()
	cloud := google.New(filepath.Join(t.TempDir(), "storage"))
	provider := testkit.Must(New("7.38.0", gke.Engine{
		Cloud: cloud, Client: client, Extensions: definitions,
		Config: &rest.Config{Host: "https://127.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("certificate")}},
	}))(t)
	e := &engine{T: t, Provider: provider, cloud: cloud, client: client, folder: absolute}
	return e.another("dev")
}

// another returns another stack, or another life of one, in the same cloud.
func (e *engine) another(name string) *engine {
	return &engine{T: e.T, Provider: e.Provider, cloud: e.cloud, client: e.client, folder: e.folder, name: name,
		state: map[resource.URN]known{}, objects: map[resource.URN]inCluster{}}
}

// newExtensions is client-go's fake of an API server that serves every kind as soon as it is there.
func newExtensions() *fakeextensions.Clientset {
	// The fake that manages fields has no schema of definitions.
	client := fakeextensions.NewSimpleClientset()
	client.PrependReactor("create", "customresourcedefinitions", func(action clienttesting.Action) (bool, runtime.Object, error) {
		definition := action.(clienttesting.CreateAction).GetObject().(*extensionsv1.CustomResourceDefinition)
		definition.Status.Conditions = []extensionsv1.CustomResourceDefinitionCondition{
			{Type: extensionsv1.Established, Status: extensionsv1.ConditionTrue},
		}
		return false, nil, nil
	})
	return client
}

// planned are the plans of resources that some test has planned before, by the request: whole stacks of
// many tests have the same resources, and most do not change.
var planned sync.Map

// Diff plans a change once.
func (e *engine) Diff(ctx context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	key := fmt.Sprintf("%s %s %#v %#v %v", req.URN.Type(), req.ID, req.OldOutputs, req.NewInputs, req.IgnoreChanges)
	if resp, known := planned.Load(key); known {
		return resp.(plugin.DiffResponse), nil
	}
	resp, err := e.Provider.Diff(ctx, req)
	if err == nil {
		planned.Store(key, resp)
	}
	return resp, err
}

// held is the state of a resource in a stack.
type held struct {
	id              resource.ID
	inputs, outputs resource.PropertyMap
}

// known is a resource of Google Cloud's in the state of a stack.
type known struct {
	held
	retain  bool
	ignored []string
}

// step is a change of one resource by an up.
type step struct {
	operation, kind, name string
	// paths are the properties that differ.
	paths []string
}

// note records a step.
func (e *engine) note(operation string, urn resource.URN, diff map[string]plugin.PropertyDiff) {
	e.steps = append(e.steps, step{operation, string(urn.Type().Name()), urn.Name(), slices.Sorted(maps.Keys(diff))})
	if operation == "replace" {
		e.replaced[urn] = true
	}
}

// summary returns the operations of the last up and the kinds that they change, sorted.
func (e *engine) summary() string {
	var all []string
	for _, s := range e.steps {
		all = append(all, s.operation+" "+s.kind)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
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
	e.state[urn] = known{now, args.RegisterRPC.GetRetainOnDelete(), args.RegisterRPC.GetIgnoreChanges()}
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
	checked, err := e.Check(ctx, plugin.CheckRequest{URN: urn, Olds: old.inputs, News: given})
	if err == nil && len(checked.Failures) > 0 {
		err = errors.New(checked.Failures[0].Reason)
	}
	if err != nil {
		return held{}, err
	}
	inputs := checked.Properties
	create := func() (held, error) {
		made, err := e.Create(ctx, plugin.CreateRequest{URN: urn, Properties: inputs})
		return held{made.ID, inputs, made.Properties}, err
	}
	if id := args.RegisterRPC.GetImportId(); id != "" && old.id == "" {
		e.note("import", urn, nil)
		read, err := e.Read(ctx, plugin.ReadRequest{URN: urn, ID: resource.ID(id)})
		return held{read.ID, inputs, read.Outputs}, err
	}
	if old.id == "" {
		e.note("create", urn, nil)
		return create()
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
		e.note("replace", urn, diff.DetailedDiff)
		if err := e.delete(urn); err != nil {
			return held{}, err
		}
		return create()
	default:
		e.note("update", urn, diff.DetailedDiff)
		updated, err := e.Update(ctx, plugin.UpdateRequest{URN: urn, ID: old.id, OldInputs: old.inputs, OldOutputs: old.outputs, NewInputs: inputs, IgnoreChanges: ignored})
		return held{old.id, inputs, updated.Properties}, err
	}
}

// delete deletes a resource of Google Cloud's, unless it outlives the stack.
func (e *engine) delete(urn resource.URN) error {
	old := e.state[urn]
	if old.retain {
		return nil
	}
	_, err := e.Delete(e.Context(), plugin.DeleteRequest{URN: urn, ID: old.id, Inputs: old.inputs, Outputs: old.outputs})
	return err
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
	kept := inputs.Copy()
	for _, text := range ignored {
		if path, err := resource.ParsePropertyPath(text); err == nil {
			path.Reset(old, kept)
		}
	}
	return kept
}

// unsecret shows secrets, which the engine does for a provider that takes none.
func unsecret(inputs resource.PropertyMap) resource.PropertyMap {
	var shown func(value resource.PropertyValue) (any, bool)
	shown = func(value resource.PropertyValue) (any, bool) {
		if value.IsSecret() {
			return value.SecretValue().Element.MapRepl(nil, shown), true
		}
		return nil, false
	}
	return resource.NewPropertyMapFromMap(inputs.MapRepl(nil, shown))
}

func (e *engine) Call(args pulumi.MockCallArgs) (resource.PropertyMap, error) {
	switch args.Token {
	case "pulumi:pulumi:readStackOutputs":
		return resource.NewPropertyMapFromMap(values{"outputs": e.asked}), nil
	case "pulumi:pulumi:readStackResourceOutputs":
		if len(e.objects) == 0 {
			return nil, errors.New("a stack without a state: Pulumi's engine crashes here")
		}
		return resource.NewPropertyMapFromMap(values{"outputs": e.resources()}), nil
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
func (e *engine) up(file values) []step {
	e.Helper()
	require.NoError(e, e.tryUp(file))
	e.removed()
	// Mocks see no outputs of a stack: these are written as they are in the states of stacks.
	e.asked = values{"clusterName": e.load(file).Cluster.Name}
	e.recoverable()
	return e.steps
}

// recoverable checks that `persia recover` knows the identifier of each resource that cannot be created twice.
func (e *engine) recoverable() {
	e.Helper()
	for urn, has := range e.state {
		if kind := string(urn.Type()); !strings.HasSuffix(kind, "Member") && !strings.HasSuffix(kind, "ServiceIdentity") {
			require.Equal(e, string(has.id), recovery.ID(kind, has.inputs.Mappable()))
		}
	}
}

// load reads a stack file.
func (e *engine) load(file values) *config.Stack {
	e.Helper()
	configured := configuration(e.T, file)
	cfg, err := config.Load(func(key string) (string, bool) { value, given := configured[key]; return value, given }, os.DirFS(e.folder))
	require.NoError(e, err)
	return cfg
}

// tryUp runs the program.
func (e *engine) tryUp(file values) error {
	e.Helper()
	e.steps, e.warned, e.announced = nil, nil, nil
	e.seen, e.replaced = map[resource.URN]bool{}, map[resource.URN]bool{}
	e.before = maps.Clone(e.objects)
	e.client.ClearActions()
	configured := configuration(e.T, file)
	ctx, err := pulumi.NewContext(e.Context(), pulumi.RunInfo{
		Project: "persia", Stack: cmp.Or(e.name, "dev"), Config: configured, RootDirectory: e.folder, Mocks: e,
		ConfigSecretKeys: secretKeys(configured),
	})
	if err != nil {
		return err
	}
	return pulumi.RunWithContext(ctx, func(ctx *pulumi.Context) error {
		ctx.Log = warnings{ctx.Log, e}
		return stack.DeployFrom(ctx, os.DirFS(e.folder), func(all []effects.Effect) { e.announced = all })
	})
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
	return input.Words(e.announced, func(effect effects.Effect) string { return effect.Text })
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
		if e.seen[urn] {
			continue
		}
		operation := "delete"
		if e.state[urn].retain {
			operation = "keep"
		}
		e.note(operation, urn, nil)
		require.NoError(e, e.delete(urn))
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
		read := testkit.Must(e.Read(e.Context(), plugin.ReadRequest{URN: urn, ID: old.id, Inputs: old.inputs, State: old.outputs}))(e.T)
		require.NotNil(e, read.Outputs, "%s is gone", urn)
		if diff := old.outputs.Diff(read.Outputs); diff != nil {
			for path := range plugin.NewDetailedDiffFromObjectDiff(diff, false) {
				drift = append(drift, fmt.Sprint(urn.Name(), " ", path))
			}
		}
		diff := testkit.Must(e.Diff(e.Context(), plugin.DiffRequest{URN: urn, ID: old.id, OldInputs: read.Inputs, OldOutputs: read.Outputs, NewInputs: old.inputs, IgnoreChanges: old.ignored}))(e.T)
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
		require.NoError(e, e.delete(urn))
	}
}

// nodes returns all nodes of the control plane, by name.
func (e *engine) nodes() map[string]corev1.Node {
	e.Helper()
	list := testkit.Must(e.client.CoreV1().Nodes().List(e.Context(), metav1.ListOptions{}))(e.T)
	nodes := map[string]corev1.Node{}
	for _, node := range list.Items {
		nodes[node.Name] = node
	}
	return nodes
}
