package gcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

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
}

// kind is one type of resource.
type kind struct {
	// id names a resource as the Google Cloud provider does.
	id func(inputs resource.PropertyMap) string
	// replaceOn are the inputs that cannot be changed in place.
	replaceOn []resource.PropertyKey
	// apply makes what the resource stands for agree with its inputs, whether or
	// not it is there already, and returns the outputs beyond the inputs.
	apply func(ctx context.Context, request request) (resource.PropertyMap, error)
	// read returns the inputs as they are by now. Without it, nothing changes
	// them but the program.
	read func(ctx context.Context, request request) (resource.PropertyMap, error)
	// remove removes what the resource stands for, if it is there.
	remove func(ctx context.Context, request request) error
}

// request is an operation on one resource.
type request struct {
	urn    resource.URN
	inputs resource.PropertyMap
	status func(message string)
}

// New makes a provider that presents itself with this version. cluster is the
// API server that stands for every GKE cluster, or nil when it does not run: that
// is enough to preview a new stack.
func New(version string, cluster *rest.Config) *Provider {
	p := &Provider{version: version}
	p.kinds = map[tokens.Type]kind{}
	maps.Copy(p.kinds, plainKinds())
	maps.Copy(p.kinds, containerKinds(cluster))
	return p
}

// Attach directs progress to the engine at address.
func (p *Provider) Attach(address string) error { return p.log.Attach(address) }

// Close ends the connection to the engine.
func (p *Provider) Close() error { return p.log.Close() }

// SignalCancellation lets the operations under way finish: each takes seconds.
func (p *Provider) SignalCancellation(context.Context) error { return nil }

// Handshake agrees with the engine on what the two exchange.
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
		return plugin.InvokeResponse{}, unknown("function", string(req.Tok))
	}
	return plugin.InvokeResponse{Properties: function(req.Args)}, nil
}

// Check refuses resources that nothing stands for.
func (p *Provider) Check(_ context.Context, req plugin.CheckRequest) (plugin.CheckResponse, error) {
	if _, err := p.kind(req.URN); err != nil {
		return plugin.CheckResponse{}, err
	}
	return plugin.CheckResponse{Properties: req.News}, nil
}

// Diff compares inputs. It replaces a resource where Google Cloud would.
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
		ChangedKeys:  diff.ChangedKeys(),
		DetailedDiff: plugin.NewDetailedDiffFromObjectDiff(diff, true),
		// Names are fixed, and two resources cannot share one.
		DeleteBeforeReplace: true,
	}
	for _, key := range result.ChangedKeys {
		if slices.Contains(kind.replaceOn, key) {
			result.ReplaceKeys = append(result.ReplaceKeys, key)
		}
	}
	for path, property := range result.DetailedDiff {
		top, _, _ := strings.Cut(path, ".")
		top, _, _ = strings.Cut(top, "[")
		if slices.Contains(kind.replaceOn, resource.PropertyKey(top)) {
			property.Kind = property.Kind.AsReplace()
			result.DetailedDiff[path] = property
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
		return plugin.CreateResponse{Properties: req.Properties}, nil
	}
	outputs, err := p.apply(ctx, kind, req.URN, req.Properties)
	if err != nil {
		return plugin.CreateResponse{}, err
	}
	return plugin.CreateResponse{ID: resource.ID(kind.id(req.Properties)), Properties: outputs, Status: resource.StatusOK}, nil
}

// Update changes a resource in place.
func (p *Provider) Update(ctx context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	kind, err := p.kind(req.URN)
	if err != nil {
		return plugin.UpdateResponse{}, err
	}
	if req.Preview {
		outputs := req.OldOutputs.Copy()
		maps.Copy(outputs, req.NewInputs)
		return plugin.UpdateResponse{Properties: outputs}, nil
	}
	outputs, err := p.apply(ctx, kind, req.URN, req.NewInputs)
	if err != nil {
		return plugin.UpdateResponse{}, err
	}
	return plugin.UpdateResponse{Properties: outputs, Status: resource.StatusOK}, nil
}

// Read returns a resource as it is by now.
func (p *Provider) Read(ctx context.Context, req plugin.ReadRequest) (plugin.ReadResponse, error) {
	kind, err := p.kind(req.URN)
	if err != nil {
		return plugin.ReadResponse{}, err
	}
	if len(req.State) == 0 {
		return plugin.ReadResponse{}, fmt.Errorf("import of %s: the simulated Google Cloud has nothing but what the stack made", req.URN)
	}
	result := plugin.ReadResult{ID: req.ID, Inputs: req.Inputs, Outputs: req.State}
	if kind.read != nil {
		inputs, err := kind.read(ctx, p.request(ctx, req.URN, req.Inputs))
		if err != nil {
			return plugin.ReadResponse{}, fmt.Errorf("read %s: %w", req.ID, err)
		}
		result.Inputs, result.Outputs = inputs, req.State.Copy()
		maps.Copy(result.Outputs, inputs)
	}
	return plugin.ReadResponse{ReadResult: result, Status: resource.StatusOK}, nil
}

// Delete removes a resource.
func (p *Provider) Delete(ctx context.Context, req plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	kind, err := p.kind(req.URN)
	if err != nil {
		return plugin.DeleteResponse{}, err
	}
	if kind.remove != nil {
		if err := kind.remove(ctx, p.request(ctx, req.URN, req.Inputs)); err != nil {
			return plugin.DeleteResponse{Status: resource.StatusUnknown}, fmt.Errorf("delete %s: %w", req.ID, err)
		}
	}
	return plugin.DeleteResponse{Status: resource.StatusOK}, nil
}

func (p *Provider) apply(ctx context.Context, kind kind, urn resource.URN, inputs resource.PropertyMap) (resource.PropertyMap, error) {
	computed, err := kind.apply(ctx, p.request(ctx, urn, inputs))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind.id(inputs), err)
	}
	outputs := inputs.Copy()
	maps.Copy(outputs, computed)
	return outputs, nil
}

func (p *Provider) request(ctx context.Context, urn resource.URN, inputs resource.PropertyMap) request {
	return request{urn: urn, inputs: inputs, status: func(message string) { p.log.Status(ctx, urn, message) }}
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
