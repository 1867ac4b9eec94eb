package kubeprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"

	"persia/sandbox/kubeprovider/cluster"
	"persia/sandbox/kubeprovider/object"
	"persia/sandbox/kubeprovider/readiness"
	"persia/sandbox/provider"
)

// errCancelled ends the waits of an update that the user interrupts.
var errCancelled = errors.New("the update was cancelled")

// Provider is one configured instance of the provider: the engine connects to
// one for each provider resource of a stack. Serve it with
// [provider.ServeEach].
type Provider struct {
	refusals

	version string
	// plugins is the folder of the credential plugins that take precedence over the PATH.
	plugins string
	log     provider.Logger

	mu        sync.Mutex
	config    config
	client    *cluster.Client // nil until configured: the cluster may not exist yet
	cancelled context.Context
	cancel    context.CancelFunc
}

// New returns a provider that presents itself to the engine with this version. It runs the
// credential plugins of kubeconfigs from the folder plugins, and others from the PATH.
func New(version, plugins string) *Provider {
	p := &Provider{version: version, plugins: plugins}
	p.cancelled, p.cancel = context.WithCancel(context.Background())
	return p
}

var _ plugin.GrpcProvider = (*Provider)(nil)

// Handshake negotiates the protocol with the engine: secrets are marked in both directions.
func (p *Provider) Handshake(
	context.Context, plugin.ProviderHandshakeRequest,
) (*plugin.ProviderHandshakeResponse, error) {
	return &plugin.ProviderHandshakeResponse{AcceptSecrets: true}, nil
}

// Attach directs messages to the engine at address.
func (p *Provider) Attach(address string) error { return p.log.Attach(address) }

// Close ends everything that is still waiting.
func (p *Provider) Close() error {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	return p.log.Close()
}

// SignalCancellation ends the operations in progress. Later ones are not
// affected: the engine also signals at the end of every update.
func (p *Provider) SignalCancellation(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel()
	p.cancelled, p.cancel = context.WithCancel(context.Background())
	return nil
}

// GetPluginInfo gives the version of the provider.
func (p *Provider) GetPluginInfo(context.Context) (plugin.PluginInfo, error) {
	version, err := semver.ParseTolerant(p.version)
	if err != nil {
		return plugin.PluginInfo{}, fmt.Errorf("version %q of the Kubernetes provider: %w", p.version, err)
	}
	return plugin.PluginInfo{Version: &version}, nil
}

// GetSchema gives the name and version of the package. The resources are not
// listed: this provider takes any kind that the API server knows.
func (p *Provider) GetSchema(context.Context, plugin.GetSchemaRequest) (plugin.GetSchemaResponse, error) {
	schema, err := json.Marshal(map[string]string{"name": "kubernetes", "version": p.version})
	return plugin.GetSchemaResponse{Schema: schema}, err
}

// Check refuses what this provider could not apply, before anything is.
func (p *Provider) Check(_ context.Context, req plugin.CheckRequest) (plugin.CheckResponse, error) {
	resp := plugin.CheckResponse{Properties: req.News}
	refuse := func(property resource.PropertyKey, format string, args ...any) {
		resp.Failures = append(resp.Failures, plugin.CheckFailure{
			Property: property, Reason: fmt.Sprintf(format, args...) + " (" + string(req.URN) + ")",
		})
	}

	inputs := object.Reveal(req.News)
	kind := inputs["kind"]
	if !kind.IsString() || !inputs["apiVersion"].IsString() {
		refuse("kind", "%s has no apiVersion and kind: %s", req.Type, unsupported("resource", string(req.Type)))
		return resp, nil
	}
	// Patch resources and Helm's carry another kind than the one in their type:
	// applying them would take over, and later delete, what they only adjust.
	if name := req.Type.Name(); name != tokens.TypeName(kind.StringValue()) {
		refuse("kind", "%s is not a %s: %s", req.Type, kind.StringValue(), unsupported("resource", string(req.Type)))
		return resp, nil
	}

	metadata := inputs["metadata"]
	if metadata.IsComputed() {
		return resp, nil
	}
	var name resource.PropertyValue
	if metadata.IsObject() {
		name = metadata.ObjectValue()["name"]
	}
	switch {
	case name.IsComputed():
	case name.IsString() && name.StringValue() != "":
	default:
		refuse("metadata", "metadata.name is required: the sandbox's Kubernetes provider does not make up names")
	}
	if _, ok := annotationsOf(inputs)[annotationReplaceUnready]; ok {
		refuse("metadata", "annotation %s: the sandbox's Kubernetes provider replaces no Job for its state", annotationReplaceUnready)
	}
	if a := annotationsOf(inputs)[readiness.AnnotationWaitFor]; a != "" {
		if err := readiness.CheckWaitFor(a); err != nil {
			refuse("metadata", "annotation %s: %v", readiness.AnnotationWaitFor, err)
		}
	}
	return resp, nil
}

// annotationsOf gives the annotations in a resource's inputs that are known.
func annotationsOf(inputs resource.PropertyMap) map[string]string {
	annotations := map[string]string{}
	if metadata := inputs["metadata"]; metadata.IsObject() {
		if all := metadata.ObjectValue()["annotations"]; all.IsObject() {
			for key, value := range all.ObjectValue() {
				if value.IsString() {
					annotations[string(key)] = value.StringValue()
				}
			}
		}
	}
	return annotations
}

// state returns the client, or nil if the provider is not configured, and its configuration.
func (p *Provider) state() (*cluster.Client, config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client, p.config
}

// configured returns the client for an operation that cannot do without.
func (p *Provider) configured(urn resource.URN) (*cluster.Client, error) {
	c, _ := p.state()
	if c == nil {
		return nil, fmt.Errorf("%s: the Kubernetes provider is not configured", urn)
	}
	return c, nil
}

// gvkOfToken reads the kind out of a type token such as
// kubernetes:apps/v1:StatefulSet, whose core group is called core.
func gvkOfToken(token tokens.Type) (apiVersion, kind string) {
	apiVersion = strings.TrimPrefix(string(token.Module().Name()), "core/")
	return apiVersion, string(token.Name())
}
