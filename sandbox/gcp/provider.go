package gcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"k8s.io/client-go/rest"

	"persia/sandbox/provider"
)

// Provider is the simulated Google Cloud.
type Provider struct {
	plugin.UnimplementedProvider

	version string
	log     provider.Logger
	kinds   map[tokens.Type]kind
	storage storage
}

var _ plugin.GrpcProvider = (*Provider)(nil)

// New makes a provider that presents itself with this version. cluster is the
// API server that stands for every GKE cluster, or nil when it does not run: that
// is enough to preview a new stack. machines are those that the catalogue lacks.
// storageDir is a folder for what outlives stacks.
func New(version string, cluster *rest.Config, machines Machines, storageDir string) *Provider {
	return newProvider(version, newGKE(cluster, machines), storage{dir: storageDir})
}

func newProvider(version string, gke gke, storage storage) *Provider {
	p := &Provider{version: version, kinds: plainKinds(), storage: storage}
	maps.Copy(p.kinds, gke.kinds())
	maps.Copy(p.kinds, storage.kinds())
	return p
}

// Attach directs progress to the engine at address.
func (p *Provider) Attach(address string) error { return p.log.Attach(address) }

// Close ends the connection to the engine.
func (p *Provider) Close() error { return p.log.Close() }

// SignalCancellation lets the operations under way finish: each takes seconds.
func (p *Provider) SignalCancellation(context.Context) error { return nil }

// Handshake agrees with the engine on what the two exchange. Secrets come as what
// they hide: without AcceptSecrets, the engine itself hides again the inputs and
// outputs that have the name of a secret input, and the program makes no name or
// identifier of a secret.
func (p *Provider) Handshake(context.Context, plugin.ProviderHandshakeRequest) (*plugin.ProviderHandshakeResponse, error) {
	return &plugin.ProviderHandshakeResponse{}, nil
}

// GetPluginInfo gives the version of the provider.
func (p *Provider) GetPluginInfo(context.Context) (plugin.PluginInfo, error) {
	version, err := semver.ParseTolerant(p.version)
	if err != nil {
		return plugin.PluginInfo{}, fmt.Errorf("version %q of the gcp provider: %w", p.version, err)
	}
	return plugin.PluginInfo{Version: &version}, nil
}

// GetSchema gives the name and version of the package.
func (p *Provider) GetSchema(context.Context, plugin.GetSchemaRequest) (plugin.GetSchemaResponse, error) {
	schema, err := json.Marshal(map[string]string{"name": "gcp", "version": p.version})
	return plugin.GetSchemaResponse{Schema: schema}, err
}

// CheckConfig takes any configuration: there is no account to log in to.
func (p *Provider) CheckConfig(_ context.Context, req plugin.CheckConfigRequest) (plugin.CheckConfigResponse, error) {
	return plugin.CheckConfigResponse{Properties: req.News}, nil
}

// DiffConfig finds no difference that matters.
func (p *Provider) DiffConfig(context.Context, plugin.DiffConfigRequest) (plugin.DiffConfigResponse, error) {
	return plugin.DiffResult{Changes: plugin.DiffNone}, nil
}

// Configure takes any configuration.
func (p *Provider) Configure(context.Context, plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	return plugin.ConfigureResponse{}, nil
}

// Invoke answers the functions that the program calls.
func (p *Provider) Invoke(_ context.Context, req plugin.InvokeRequest) (plugin.InvokeResponse, error) {
	function, known := functions[req.Tok]
	if !known {
		function, known = p.storage.functions()[req.Tok]
	}
	if !known {
		return plugin.InvokeResponse{}, unknown("function", string(req.Tok))
	}
	result, err := function(req.Args)
	return plugin.InvokeResponse{Properties: result}, err
}

// Check refuses resources that nothing stands for, and those without a name that
// Pulumi does not name.
func (p *Provider) Check(_ context.Context, req plugin.CheckRequest) (plugin.CheckResponse, error) {
	kind, err := p.kind(req.URN)
	if err != nil {
		return plugin.CheckResponse{}, err
	}
	inputs, err := kind.named(req)
	if err != nil {
		return plugin.CheckResponse{}, err
	}
	resp := plugin.CheckResponse{Properties: inputs}
	for _, name := range kind.required() {
		if inputs[name].IsNull() {
			resp.Failures = append(resp.Failures, plugin.CheckFailure{
				Property: name,
				Reason:   fmt.Sprintf("%s is required: the simulated Google Cloud has no defaults for what names a resource", name),
			})
		}
	}
	return resp, nil
}

// Diff compares inputs. It replaces a resource where Google Cloud's provider
// would. A value that is not known yet differs from every other.
func (p *Provider) Diff(_ context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	kind, err := p.kind(req.URN)
	if err != nil {
		return plugin.DiffResponse{}, err
	}
	diff := req.OldInputs.Diff(req.NewInputs)
	if diff == nil {
		return plugin.DiffResult{Changes: plugin.DiffNone}, nil
	}
	result := plugin.DiffResult{
		Changes:      plugin.DiffSome,
		DetailedDiff: plugin.NewDetailedDiffFromObjectDiff(diff, true),
		// Two resources cannot share the name that the program gives. A resource
		// without a name is told by all of its inputs.
		DeleteBeforeReplace: req.NewInputs.HasValue("name") && !kind.autoNamed,
	}
	for path, change := range result.DetailedDiff {
		changed, err := resource.ParsePropertyPath(path)
		if err != nil {
			return plugin.DiffResponse{}, fmt.Errorf("path %q of a change: %w", path, err)
		}
		if kind.replaces(changed, req.OldInputs, req.NewInputs) {
			change.Kind = change.Kind.AsReplace()
			result.DetailedDiff[path] = change
		}
	}
	return result, nil
}

// Create makes a resource. Previews know its inputs and nothing else.
func (p *Provider) Create(ctx context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	kind, err := p.kind(req.URN)
	if err != nil {
		return plugin.CreateResponse{}, err
	}
	if req.Preview {
		planned := req.Properties.Copy()
		for _, name := range kind.computed {
			planned[name] = resource.MakeComputed(resource.NewStringProperty(""))
		}
		return plugin.CreateResponse{Properties: planned}, nil
	}
	id := expand(kind.id, req.Properties)
	if kind.create != nil {
		if err := kind.create(id); err != nil {
			return plugin.CreateResponse{}, fmt.Errorf("create %s: %w", id, err)
		}
	}
	state, err := p.apply(ctx, kind, req.URN, req.Properties)
	if err != nil {
		return plugin.CreateResponse{}, fmt.Errorf("create %s: %w", id, err)
	}
	return plugin.CreateResponse{ID: resource.ID(id), Properties: state}, nil
}

// Update changes a resource in place.
func (p *Provider) Update(ctx context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	kind, err := p.kind(req.URN)
	if err != nil {
		return plugin.UpdateResponse{}, err
	}
	if req.Preview {
		// The inputs change, and the outputs beside them do not.
		state := req.OldOutputs.Copy()
		for name := range req.OldInputs {
			delete(state, name)
		}
		maps.Copy(state, req.NewInputs)
		for _, name := range kind.computed {
			if req.OldInputs[name].DeepEquals(req.NewInputs[name]) {
				state[name] = req.OldOutputs[name]
			}
		}
		return plugin.UpdateResponse{Properties: state}, nil
	}
	state, err := p.apply(ctx, kind, req.URN, req.NewInputs)
	if err != nil {
		return plugin.UpdateResponse{}, fmt.Errorf("update %s: %w", req.ID, err)
	}
	return plugin.UpdateResponse{Properties: state}, nil
}

func (p *Provider) apply(ctx context.Context, kind kind, urn resource.URN, inputs resource.PropertyMap) (resource.PropertyMap, error) {
	state, err := kind.state(inputs)
	if err != nil || kind.apply == nil {
		return state, err
	}
	return state, kind.apply(ctx, inputs, func(message string) { p.log.Status(ctx, urn, message) })
}

// Read returns a resource as it is by now.
func (p *Provider) Read(ctx context.Context, req plugin.ReadRequest) (plugin.ReadResponse, error) {
	kind, err := p.kind(req.URN)
	if err != nil {
		return plugin.ReadResponse{}, err
	}
	inputs, err := p.inputs(ctx, kind, req)
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("read %s: %w", req.ID, err)
	}
	if inputs == nil {
		return plugin.ReadResponse{}, nil
	}
	state, err := kind.state(inputs)
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("read %s: %w", req.ID, err)
	}
	return plugin.ReadResponse{ReadResult: plugin.ReadResult{ID: req.ID, Inputs: inputs, Outputs: state}}, nil
}

// inputs are those of a resource as it is by now, whether the stack knows it or
// imports it, nil if it is not there.
func (p *Provider) inputs(ctx context.Context, kind kind, req plugin.ReadRequest) (resource.PropertyMap, error) {
	switch imported := len(req.State) == 0; {
	case imported && kind.find == nil:
		return nil, fmt.Errorf("import of %s: the simulated Google Cloud has none but what the stack made", req.URN.Type())
	case imported:
		return kind.find(string(req.ID))
	case kind.read == nil:
		return req.Inputs, nil
	default:
		return kind.read(ctx, req.Inputs)
	}
}

// Delete removes a resource.
func (p *Provider) Delete(ctx context.Context, req plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	kind, err := p.kind(req.URN)
	if err != nil {
		return plugin.DeleteResponse{}, err
	}
	if kind.remove != nil {
		if err := kind.remove(ctx, req.Outputs); err != nil {
			return plugin.DeleteResponse{}, fmt.Errorf("delete %s: %w", req.ID, err)
		}
	}
	return plugin.DeleteResponse{}, nil
}

func (p *Provider) kind(urn resource.URN) (kind, error) {
	kind, known := p.kinds[urn.Type()]
	if !known {
		return kind, unknown("resource", string(urn.Type()))
	}
	return kind, nil
}

func unknown(what, token string) error {
	return fmt.Errorf("the simulated Google Cloud has no %s %s: add it to sandbox/gcp if the program needs it", what, token)
}
