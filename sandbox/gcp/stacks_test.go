package gcp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/config/nodepool"
	"persia/config/stackfile"
	infra "persia/infra/gke"
	"persia/sandbox/gcp/google"
	"persia/stack"
)

// engine runs the program as Pulumi's engine does, with Google Cloud's resources at
// the simulated Google Cloud and all others at nobody.
type engine struct {
	simulated
	folder string
	// name is the stack's, dev if it is empty.
	name string

	mu sync.Mutex
	// order is that of the creations.
	order []resource.URN
	state map[resource.URN]known
	// did is what an up did, without what stayed the same.
	did []string
	// asked are the outputs that the next up reads.
	asked values
}

// known is a resource of Google Cloud's in the state of a stack.
type known struct {
	held
	retain bool
}

func (e *engine) NewResource(args pulumi.MockResourceArgs) (string, resource.PropertyMap, error) {
	if !strings.HasPrefix(args.TypeToken, "gcp:") {
		return args.Name, served(args), nil
	}
	urn := resource.NewURN("dev", "persia", "", tokens.Type(args.TypeToken), args.Name)
	e.mu.Lock()
	defer e.mu.Unlock()
	now, err := e.step(urn, args)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", urn, err)
	}
	if _, before := e.state[urn]; !before {
		e.order = append(e.order, urn)
	}
	e.state[urn] = known{now, args.RegisterRPC.GetRetainOnDelete()}
	return string(now.id), now.outputs, nil
}

// step makes a resource what the program wants.
func (e *engine) step(urn resource.URN, args pulumi.MockResourceArgs) (held, error) {
	ctx, old := e.Context(), e.state[urn]
	ignored := args.RegisterRPC.GetIgnoreChanges()
	checked, err := e.Check(ctx, plugin.CheckRequest{
		URN: urn, Olds: old.inputs, News: unsecret(args.Inputs), RandomSeed: []byte(urn + " is a seed that is long enough"),
	})
	if err == nil && len(checked.Failures) > 0 {
		err = errors.New(checked.Failures[0].Reason)
	}
	if err != nil {
		return held{}, err
	}
	inputs := checked.Properties
	if id := args.RegisterRPC.GetImportId(); id != "" && old.id == "" {
		e.did = append(e.did, "import "+args.TypeToken)
		read, err := e.Read(ctx, plugin.ReadRequest{URN: urn, ID: resource.ID(id)})
		return held{read.ID, inputs, read.Outputs}, err
	}
	if old.id == "" {
		e.did = append(e.did, "create "+args.TypeToken)
		made, err := e.Create(ctx, plugin.CreateRequest{URN: urn, Properties: inputs})
		return held{made.ID, inputs, made.Properties}, err
	}
	inputs = keep(inputs, old.inputs, ignored)
	diff, err := e.Diff(ctx, plugin.DiffRequest{URN: urn, ID: old.id, OldInputs: old.inputs, OldOutputs: old.outputs, NewInputs: inputs, IgnoreChanges: ignored})
	switch {
	case err != nil || diff.Changes == plugin.DiffNone:
		return held{old.id, inputs, old.outputs}, err
	case diff.Replace():
		e.did = append(e.did, fmt.Sprint("replace ", args.TypeToken, " ", slices.Sorted(maps.Keys(diff.DetailedDiff))))
		return old.held, nil
	default:
		e.did = append(e.did, fmt.Sprint("update ", args.TypeToken, " ", slices.Sorted(maps.Keys(diff.DetailedDiff))))
		updated, err := e.Update(ctx, plugin.UpdateRequest{URN: urn, ID: old.id, OldInputs: old.inputs, OldOutputs: old.outputs, NewInputs: inputs, IgnoreChanges: ignored})
		return held{old.id, inputs, updated.Properties}, err
	}
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

// served are the outputs of what is not Google Cloud's, with what an API server adds
// and the program reads.
func served(args pulumi.MockResourceArgs) resource.PropertyMap {
	outputs := args.Inputs.Mappable()
	add := func(part, field string, value any) {
		fields, _ := outputs[part].(values)
		if fields == nil {
			fields = values{}
			outputs[part] = fields
		}
		if fields[field] == nil {
			fields[field] = value
		}
	}
	switch args.TypeToken {
	case "kubernetes:core/v1:Secret", "kubernetes:core/v1:ConfigMap":
		add("metadata", "resourceVersion", "7")
	case "kubernetes:core/v1:Service":
		add("spec", "clusterIP", "10.1.0.9")
	}
	return resource.NewPropertyMapFromMap(outputs)
}

func (e *engine) Call(args pulumi.MockCallArgs) (resource.PropertyMap, error) {
	if args.Token == "pulumi:pulumi:readStackOutputs" {
		return properties(values{"outputs": e.asked}), nil
	}
	if outputs, asked := noOutputs(args.Token); asked {
		return outputs, nil
	}
	resp, err := e.Invoke(e.Context(), plugin.InvokeRequest{Tok: tokens.ModuleMember(args.Token), Args: args.Args})
	return resp.Properties, err
}

// up runs the program, and returns what changed.
func (e *engine) up(configuration map[string]string) []string {
	e.Helper()
	e.did = nil
	ctx, err := pulumi.NewContext(e.Context(), pulumi.RunInfo{
		Project: "persia", Stack: cmp.Or(e.name, "dev"), Config: configuration, RootDirectory: e.folder, Mocks: e,
		ConfigSecretKeys: []string{"persia:pedl"}, // all secrets of the files are in it
	})
	require.NoError(e, err)
	require.NoError(e, pulumi.RunWithContext(ctx, stack.Deploy))
	// Mocks see no outputs of a stack.
	cfg, err := config.Load(ctx.GetConfig, os.DirFS(e.folder))
	require.NoError(e, err)
	e.asked = values{}
	for name := range infra.Asked(cfg.Cluster) {
		e.asked[name] = "off"
	}
	slices.Sort(e.did)
	return e.did
}

// refresh reads what there is, and returns the properties that had drifted.
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
		e.state[urn] = known{held{old.id, read.Inputs, read.Outputs}, old.retain}
	}
	return drift
}

// destroy deletes what the stack has, but for what outlives it.
func (e *engine) destroy() {
	e.Helper()
	for _, urn := range slices.Backward(e.order) {
		if old := e.state[urn]; !old.retain {
			_, err := e.Delete(e.Context(), plugin.DeleteRequest{URN: urn, ID: old.id, Inputs: old.inputs, Outputs: old.outputs})
			require.NoError(e, err)
		}
	}
}

// stackFiles are those of the project and of the examples.
func stackFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, folder := range []string{"../..", "../../examples"} {
		found, err := filepath.Glob(filepath.Join(folder, "Pulumi.*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, found, folder)
		paths = append(paths, found...)
	}
	return paths
}

// stackFile are the values of a stack file, with each encrypted text as it is written.
func stackFile(t *testing.T, path string) values {
	t.Helper()
	file, err := stackfile.Read(os.DirFS(filepath.Dir(path)), filepath.Base(path), "persia")
	require.NoError(t, err)
	return values(file.Config.Open(func(_ []any, ciphertext string) string { return ciphertext }))
}

func configuration(t *testing.T, file values) map[string]string {
	t.Helper()
	all := map[string]string{}
	for key, value := range file {
		text, isText := value.(string)
		if !isText {
			encoded, err := json.Marshal(value)
			require.NoError(t, err)
			text = string(encoded)
		}
		all[key] = text
	}
	return all
}

func newStack(t *testing.T, folder string) *engine {
	t.Helper()
	absolute, err := filepath.Abs(folder)
	require.NoError(t, err)
	return &engine{simulated: newGoogle(t), folder: absolute, state: map[resource.URN]known{}}
}

// TestStacks brings every stack file up: a second up finds nothing to do and sends
// nothing, neither before nor after a refresh, and nothing but what outlives a stack
// is left when it goes.
func TestStacks(t *testing.T) {
	for _, path := range stackFiles(t) {
		t.Run(strings.Split(filepath.Base(path), ".")[1], func(t *testing.T) {
			e, file := newStack(t, filepath.Dir(path)), stackFile(t, path)
			e.up(configuration(t, file))
			e.cloud.Requests()
			assert.Empty(t, e.up(configuration(t, file)), "a second up")
			assert.Empty(t, e.refresh(), "drift")
			assert.Empty(t, e.up(configuration(t, file)), "an up after a refresh")
			assert.Empty(t, e.cloud.Requests(), "requests that change something")

			if cluster, made := file["persia:cluster"].(values); made && cluster["existing"] == nil {
				cluster["deletionProtection"] = false
				e.up(configuration(t, file))
			}
			e.destroy()
			assert.Empty(t, e.names(), "nodes")
			for _, kind := range []string{"container.cluster", "container.nodePool", "compute.subnetwork", "compute.router", "iam.serviceAccount"} {
				left, err := e.cloud.List(kind)
				require.NoError(t, err)
				assert.Empty(t, left, kind)
			}
		})
	}
}

// TestNewerServers: a stack stays as it is where Google turns on more by itself.
func TestNewerServers(t *testing.T) {
	e, file := newStack(t, "../.."), stackFile(t, "../../Pulumi.dev.yaml")
	var err error
	e.Provider, err = newProvider("7.38.0", e.gke, google.New(t.TempDir(), google.Settings{L4ILBSubsetting: true}))
	require.NoError(t, err)
	e.up(configuration(t, file))
	assert.Empty(t, e.up(configuration(t, file)))
}

// TestEditsOfAPoolAreCarriedOut makes each edit that is documented as an update: no
// other resource changes, GKE does not refuse it, and a second up has nothing to do.
func TestEditsOfAPoolAreCarriedOut(t *testing.T) {
	edits := poolEdits()
	edits["the last label"] = edit{values{"labels": values{"team": "ads"}}, values{"labels": values{}}}
	edits["the last taint"] = edit{values{"taints": []any{values{"key": "a", "value": "b", "effect": "NoSchedule"}}}, values{"taints": []any{}}}
	updated := []string{"the last label", "the last taint"}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[nodepool.Pool]()) {
		if field.Tag.Get("change") == "update" {
			updated = append(updated, field.Name)
		}
	}
	for _, name := range updated {
		t.Run(name, func(t *testing.T) {
			e, c := newStack(t, "../.."), edits[name]
			e.up(configuration(t, poolStackOf(t, c.before)))
			edited := configuration(t, poolStackOf(t, c.before, c.after))
			assertOnly(t, "update "+nodePoolType, e.up(edited))
			assert.Empty(t, e.up(edited), "a second up")
		})
	}
}

// TestEditsOfACluster makes edits of a cluster, with what the documentation says of
// each: most are updates, and those that cannot be changed later replace it.
func TestEditsOfACluster(t *testing.T) {
	const key = "projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/k"
	update, replace := "update "+clusterType, "replace "+clusterType
	for _, c := range []struct {
		name          string
		before, after values
		want          string
	}{
		{"release channel", nil, values{"releaseChannel": "STABLE"}, update},
		{"protection", values{"deletionProtection": true}, values{"deletionProtection": false}, update},
		{"maintenance", nil, values{"maintenance": values{"startTime": "05:00"}}, update},
		{"an exclusion", nil, values{"maintenance": values{"exclusions": []any{values{"name": "run", "start": "2026-12-01T00:00:00Z", "end": "2026-12-20T00:00:00Z"}}}}, update},
		{"no exclusion", values{"maintenance": values{"exclusions": []any{values{"name": "run", "start": "2026-12-01T00:00:00Z", "end": "2026-12-20T00:00:00Z"}}}}, values{"maintenance": values{}}, update},
		{"authorized networks", nil, values{"authorizedNetworks": []any{values{"name": "office", "cidr": "203.0.113.0/24"}}}, update},
		{"no authorized network", values{"authorizedNetworks": []any{values{"name": "office", "cidr": "203.0.113.0/24"}}}, values{"authorizedNetworks": []any{}}, update},
		{"shielded nodes", nil, values{"shieldedNodes": false}, update},
		{"binary authorization", nil, values{"binaryAuthorization": false}, update},
		{"security posture", nil, values{"securityPosture": "DISABLED"}, update},
		{"autoscaling profile", nil, values{"autoscalingProfile": "BALANCED"}, update},
		{"the disk driver", nil, values{"csiDrivers": values{"persistentDisk": false}}, update},
		{"storage drivers", nil, values{"csiDrivers": values{"filestore": false}}, update},
		{"monitoring", nil, values{"monitoring": values{"components": []any{"DCGM", "SYSTEM_COMPONENTS"}}}, update},
		{"cost management", nil, values{"costManagement": false}, update},
		{"datapath", nil, values{"dataplaneV2": false}, replace},
		{"private nodes", nil, values{"privateNodes": false}, replace},
		{"a new key of Secrets", nil, values{"encryption": values{"secrets": key}}, update},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newStack(t, "../..")
			clusterOf := func(settings ...values) map[string]string {
				file := poolStackOf(t)
				cluster := file["persia:cluster"].(values)
				cluster["deletionProtection"] = false
				for _, s := range settings {
					maps.Copy(cluster, s)
				}
				return configuration(t, file)
			}
			e.up(clusterOf(c.before))
			assert.Empty(t, e.up(clusterOf(c.before)), "a second up")
			edited := clusterOf(c.before, c.after)
			did := e.up(edited)
			assert.True(t, slices.ContainsFunc(did, func(step string) bool { return strings.HasPrefix(step, c.want) }), "%s among %v", c.want, did)
			if c.want == update {
				assert.False(t, slices.ContainsFunc(did, func(step string) bool { return strings.HasPrefix(step, "replace") }), "%v", did)
				assert.Empty(t, e.up(edited), "a second up after the edit")
			}
		})
	}
}

// assertOnly holds that there is one step, of an operation on a type.
func assertOnly(t *testing.T, want string, did []string) {
	t.Helper()
	if assert.Len(t, did, 1, "%v", did) {
		assert.True(t, strings.HasPrefix(did[0], want+" "), "%v", did)
	}
}
