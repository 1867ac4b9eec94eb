package gcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"k8s.io/client-go/rest"

	"persia/sandbox/gcp/google"
	"persia/sandbox/gcp/nodepools"
	"persia/sandbox/gcp/terraform"
	"persia/sandbox/provider"
)

// Provider is the simulated Google Cloud.
type Provider struct {
	plugin.UnimplementedProvider

	version   string
	log       provider.Logger
	cloud     *google.Cloud
	api       *api
	terraform *terraform.Provider
}

var _ plugin.GrpcProvider = (*Provider)(nil)

// New makes a provider that presents itself with this version. cluster is the
// API server that simulates every GKE cluster, or nil when it does not run, which is
// enough to preview a new stack. machines are machine types that the catalogue lacks.
// cloud keeps the resources. realPool is the node pool whose node package node runs, or
// "".
func New(version string, cluster *rest.Config, machines nodepools.Machines, cloud *google.Cloud, realPool string) (*Provider, error) {
	return newProvider(version, newGKE(cluster, machines, realPool), cloud)
}

func newProvider(version string, gke kubernetesEngine, cloud *google.Cloud) (*Provider, error) {
	p := &Provider{version: version, cloud: cloud}
	p.api = &api{Cloud: cloud, gke: gke, provider: p}
	planner, err := terraform.New(p.api)
	p.terraform = planner
	return p, err
}

// Attach directs progress to the engine at address.
func (p *Provider) Attach(address string) error { return p.log.Attach(address) }

// Close ends the connection to the engine.
func (p *Provider) Close() error { return p.log.Close() }

// SignalCancellation lets the operations under way finish: each takes seconds.
func (p *Provider) SignalCancellation(context.Context) error { return nil }

// Handshake negotiates the protocol with the engine. Secrets arrive as plain values: without
// AcceptSecrets, the engine itself marks the inputs and outputs with the name of a secret input,
// and the program derives no name or identifier from a secret.
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
	function, known := p.functions()[req.Tok]
	if !known {
		return plugin.InvokeResponse{}, unknown("function", string(req.Tok))
	}
	result, err := function(req.Args)
	return plugin.InvokeResponse{Properties: result}, err
}

// Check refuses resources that are not simulated, and inputs that the provider's schema does
// not take.
func (p *Provider) Check(ctx context.Context, req plugin.CheckRequest) (plugin.CheckResponse, error) {
	if err := p.known(req.URN); err != nil {
		return plugin.CheckResponse{}, err
	}
	return p.terraform.Check(ctx, req)
}

// Diff plans a change as the official provider does.
func (p *Provider) Diff(ctx context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	if err := p.known(req.URN); err != nil {
		return plugin.DiffResponse{}, err
	}
	return p.terraform.Diff(ctx, req)
}

// Create creates a resource. In a preview it returns only the planned values.
func (p *Provider) Create(ctx context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	if err := p.known(req.URN); err != nil {
		return plugin.CreateResponse{}, err
	}
	id, state, err := p.terraform.Create(withURN(ctx, req.URN), req.URN.Type(), req.Properties, req.Preview)
	return plugin.CreateResponse{ID: id, Properties: state}, err
}

// Update changes a resource in place.
func (p *Provider) Update(ctx context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	if err := p.known(req.URN); err != nil {
		return plugin.UpdateResponse{}, err
	}
	state, err := p.terraform.Update(withURN(ctx, req.URN), req.URN.Type(), req.ID, req.OldOutputs, req.NewInputs, req.IgnoreChanges, req.Preview)
	return plugin.UpdateResponse{Properties: state}, err
}

// Read returns a resource as it is by now. What the program gave stays its input,
// with the value that is there by now.
func (p *Provider) Read(ctx context.Context, req plugin.ReadRequest) (plugin.ReadResponse, error) {
	if err := p.known(req.URN); err != nil {
		return plugin.ReadResponse{}, err
	}
	state, err := p.terraform.Read(ctx, req.URN.Type(), req.ID, req.State)
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("read %s: %w", req.ID, err)
	}
	if state == nil {
		return plugin.ReadResponse{}, nil
	}
	inputs := p.terraform.Inputs(req.URN.Type(), req.Inputs, state)
	return plugin.ReadResponse{ReadResult: plugin.ReadResult{ID: req.ID, Inputs: inputs, Outputs: state}}, nil
}

// Delete removes a resource.
func (p *Provider) Delete(ctx context.Context, req plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	if err := p.known(req.URN); err != nil {
		return plugin.DeleteResponse{}, err
	}
	return plugin.DeleteResponse{}, p.terraform.Delete(ctx, req.URN.Type(), req.ID, req.Outputs)
}

// ID returns the identifier of the resource that inputs describe.
func (p *Provider) ID(urn resource.URN, inputs resource.PropertyMap) (resource.ID, error) {
	if err := p.known(urn); err != nil {
		return "", err
	}
	return p.terraform.ID(urn.Type(), inputs), nil
}

// Resume completes what clusters and node pools were in the middle of when a command
// was killed, as GKE does by itself. The control plane must run.
func (p *Provider) Resume(ctx context.Context) error { return p.api.resume(ctx) }

func (p *Provider) known(urn resource.URN) error {
	if !p.terraform.Has(urn.Type()) {
		return unknown("resource", string(urn.Type()))
	}
	return nil
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
		p.log.Status(ctx, urn, message)
	}
}

// function answers one function.
type function func(args resource.PropertyMap) (resource.PropertyMap, error)

func (p *Provider) functions() map[tokens.ModuleMember]function {
	functions := map[tokens.ModuleMember]function{
		"gcp:organizations/getProject:getProject":                       getProject,
		"gcp:storage/getBuckets:getBuckets":                             p.getBuckets,
		"gcp:storage/getProjectServiceAccount:getProjectServiceAccount": getProjectServiceAccount,
		"gcp:gkebackup/getBackupPlanIamPolicy:getBackupPlanIamPolicy":   p.getBackupPlanPolicy,
	}
	for _, l := range terraform.Lookups() {
		functions[l.Function] = p.lookup(l.API, l.ID)
	}
	return functions
}
