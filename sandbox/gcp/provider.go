package gcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	shim "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/diagnostics"
	shimv2 "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/sdk-v2"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"

	"persia/sandbox/gcp/gke"
	"persia/sandbox/provider"
)

// Provider is the simulated Google Cloud.
type Provider struct {
	provider.Base
	// Buckets is the address of a server of buckets, or "".
	Buckets string

	api   *api
	shim  shim.Provider
	types map[tokens.Type]*resourceType
}

// New makes a provider that presents itself with this version. The cloud of engine keeps the resources, and its API
// server simulates every GKE cluster. Without an API server, the provider can preview a new stack.
func New(version string, engine gke.Engine) (*Provider, error) {
	resources, err := readSchema()
	if err != nil {
		return nil, err
	}
	p := &Provider{Base: provider.Base{Name: "gcp", Version: version}, types: map[tokens.Type]*resourceType{}}
	p.api = &api{cloud: engine.Cloud, gke: engine, progress: p.progress}
	for name, resource := range resources {
		kind, known := kinds()[name]
		if !known {
			return nil, fmt.Errorf("schema.json: %s has no kind", name)
		}
		r := &resourceType{kind, name, resource.Schema, p.api}
		r.install(resource)
		p.types[kind.Token] = r
	}
	p.shim = shimv2.NewProvider(&schema.Provider{ResourcesMap: resources},
		shimv2.WithPlanResourceChange(func(string) bool { return true }))
	return p, nil
}

// SignalCancellation lets the operations under way finish: each takes seconds.
func (p *Provider) SignalCancellation(context.Context) error { return nil }

// CheckConfig takes any configuration: there is no account to log in to.
func (p *Provider) CheckConfig(_ context.Context, req plugin.CheckConfigRequest) (plugin.CheckConfigResponse, error) {
	return plugin.CheckConfigResponse{Properties: req.News}, nil
}

// DiffConfig finds that any difference is an update. No setting of the official provider forces the
// replacement of its resources (ForcesProviderReplace in pulumi-gcp's provider/resources.go).
func (p *Provider) DiffConfig(_ context.Context, req plugin.DiffConfigRequest) (plugin.DiffConfigResponse, error) {
	diff := req.OldInputs.Diff(req.NewInputs)
	if diff == nil {
		return plugin.DiffResult{Changes: plugin.DiffNone}, nil
	}
	return plugin.DiffResult{Changes: plugin.DiffSome, DetailedDiff: plugin.NewDetailedDiffFromObjectDiff(diff, true)}, nil
}

// Configure takes any configuration.
func (p *Provider) Configure(context.Context, plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	return plugin.ConfigureResponse{}, nil
}

// Invoke answers the functions that the program calls.
func (p *Provider) Invoke(_ context.Context, req plugin.InvokeRequest) (plugin.InvokeResponse, error) {
	result, err := p.call(req.Tok, req.Args)
	return plugin.InvokeResponse{Properties: result}, err
}

// Check refuses resources that are not simulated, and inputs that the provider's schema does
// not take. It adds the schema's defaults to the inputs.
func (p *Provider) Check(ctx context.Context, req plugin.CheckRequest) (plugin.CheckResponse, error) {
	r, err := p.typeOf(req.URN)
	if err != nil {
		return plugin.CheckResponse{}, err
	}
	var reasons []string
	for _, path := range notProperties(r.fields, req.News, "") {
		reasons = append(reasons, fmt.Sprintf("%s is not a property in pulumi-gcp's schema of %s", path, r.Token))
	}
	_, errs := p.shim.ValidateResource(ctx, r.name, p.shim.NewResourceConfig(ctx, toTerraform(r.fields, req.News)))
	// The SDK visits fields in the random order of a map.
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	for _, err := range errs {
		reason := err.Error()
		if refused := (*diagnostics.ValidationError)(nil); errors.As(err, &refused) {
			// As the bridge shows it.
			reason = strings.TrimSuffix(refused.Summary+". "+refused.Detail, ". ")
		}
		reasons = append(reasons, reason)
	}
	if req.News["project"].IsNull() && r.fields["project"] != nil && r.API != "storage.bucket" {
		reasons = append(reasons, "project is required: the simulated Google Cloud has no default project")
	}
	resp := plugin.CheckResponse{Properties: withDefaults(r.fields, req.News)}
	for _, reason := range reasons {
		resp.Failures = append(resp.Failures, plugin.CheckFailure{Reason: reason})
	}
	return resp, nil
}

// Diff plans a change as the official provider does.
func (p *Provider) Diff(ctx context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	planned, err := p.plan(ctx, req.URN, req.ID, req.OldOutputs, req.NewInputs, req.IgnoreChanges)
	if err != nil {
		return plugin.DiffResponse{}, err
	}
	return p.detailedDiff(planned, req.NewInputs.HasValue("name"))
}

// Create creates a resource. In a preview it returns only the planned values.
func (p *Provider) Create(ctx context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	planned, err := p.plan(ctx, req.URN, "", nil, req.Properties, nil)
	if err != nil {
		return plugin.CreateResponse{}, err
	}
	id, state, err := p.apply(withURN(ctx, req.URN), planned, req.Preview)
	return plugin.CreateResponse{ID: id, Properties: state}, err
}

// Update changes a resource in place.
func (p *Provider) Update(ctx context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	planned, err := p.plan(ctx, req.URN, req.ID, req.OldOutputs, req.NewInputs, req.IgnoreChanges)
	if err != nil {
		return plugin.UpdateResponse{}, err
	}
	_, state, err := p.apply(withURN(ctx, req.URN), planned, req.Preview)
	return plugin.UpdateResponse{Properties: state}, err
}

// Read returns a resource as it is by now. What the program gave stays its input,
// with the value that is there by now. Without a state, the resource is imported.
func (p *Provider) Read(ctx context.Context, req plugin.ReadRequest) (plugin.ReadResponse, error) {
	r, err := p.typeOf(req.URN)
	if err != nil {
		return plugin.ReadResponse{}, err
	}
	var prior shim.InstanceState
	if len(req.State) > 0 {
		prior, err = p.state(r, req.ID, req.State)
	} else {
		var states []shim.InstanceState
		if states, err = p.shim.ResourcesMap().Get(r.name).Importer()(r.name, string(req.ID), nil); len(states) > 0 {
			prior = states[0]
		}
	}
	if err == nil && prior != nil {
		prior, err = p.shim.Refresh(ctx, r.name, prior, p.shim.NewResourceConfig(ctx, nil))
	}
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("read %s: %w", req.ID, err)
	}
	if prior == nil {
		return plugin.ReadResponse{}, nil
	}
	state, err := r.properties(prior)
	inputs := current(r.fields, req.Inputs, state, len(req.Inputs) == 0)
	return plugin.ReadResponse{ReadResult: plugin.ReadResult{ID: req.ID, Inputs: inputs, Outputs: state}}, err
}

// Delete removes a resource.
func (p *Provider) Delete(ctx context.Context, req plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	r, err := p.typeOf(req.URN)
	if err != nil {
		return plugin.DeleteResponse{}, err
	}
	prior, err := p.state(r, req.ID, req.Outputs)
	if err == nil {
		_, err = p.shim.Apply(ctx, r.name, prior, p.shim.NewDestroyDiff(ctx, r.name, shim.TimeoutOptions{}))
	}
	return plugin.DeleteResponse{}, err
}

// Resume completes what clusters and node pools were in the middle of when a command
// was killed, as GKE does by itself. The control plane must run.
func (p *Provider) Resume(ctx context.Context) error { return p.api.resume(ctx) }

func (p *Provider) typeOf(urn resource.URN) (*resourceType, error) {
	if r := p.types[urn.Type()]; r != nil {
		return r, nil
	}
	return nil, unknown("resource", string(urn.Type()))
}

func unknown(what, token string) error {
	return fmt.Errorf("the simulated Google Cloud has no %s %s: it has what the program uses, and nothing else", what, token)
}

type urnKey struct{}

// withURN names the resource whose progress is reported.
func withURN(ctx context.Context, urn resource.URN) context.Context {
	return context.WithValue(ctx, urnKey{}, urn)
}

func (p *Provider) progress(ctx context.Context, message string) {
	if urn, told := ctx.Value(urnKey{}).(resource.URN); told {
		p.Log.Status(ctx, urn, message)
	}
}
