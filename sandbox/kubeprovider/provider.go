package kubeprovider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"persia/sandbox/provider"
)

// errCancelled ends the waits of an update that the user interrupts.
var errCancelled = errors.New("the update was cancelled")

// Provider is one configured instance of the provider: the engine connects to
// one for each provider resource of a stack. Serve it with
// [provider.ServeEach].
type Provider struct {
	provider.Base
	// plugins is the folder of the credential plugins that take precedence over the PATH.
	plugins string

	mu        sync.Mutex
	config    config
	client    *client // nil until configured: the cluster may not exist yet
	cancelled context.Context
	cancel    context.CancelFunc
}

// New returns a provider that presents itself to the engine with this version. It runs the
// credential plugins of kubeconfigs from the folder plugins, and others from the PATH.
func New(version, plugins string) *Provider {
	p := &Provider{Base: provider.Base{Name: "kubernetes", Version: version}, plugins: plugins}
	p.cancelled, p.cancel = context.WithCancel(context.Background())
	return p
}

// Close ends everything that is still waiting.
func (p *Provider) Close() error {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	return p.Log.Close()
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

// Check refuses what this provider could not apply, before anything is.
func (p *Provider) Check(_ context.Context, req plugin.CheckRequest) (plugin.CheckResponse, error) {
	resp := plugin.CheckResponse{Properties: req.News}
	refuse := func(property resource.PropertyKey, err error) {
		resp.Failures = append(resp.Failures, plugin.CheckFailure{Property: property, Reason: fmt.Sprintf("%v (%s)", err, req.URN)})
	}
	inputs := req.News
	// Patch resources and Helm's carry another kind than the one in their type, or none:
	// applying them would take over, and later delete, what they only adjust.
	if kind := inputs["kind"]; !kind.IsString() || !inputs["apiVersion"].IsString() || req.Type.Name() != tokens.TypeName(kind.StringValue()) {
		refuse("kind", fmt.Errorf("the sandbox's Kubernetes provider has no %s; it takes Kubernetes objects, one resource each", req.Type))
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
	if !name.IsComputed() && (!name.IsString() || name.StringValue() == "") {
		refuse("metadata", errors.New("metadata.name is required: the sandbox's Kubernetes provider does not make up names"))
	}
	if _, err := parseWaitFor(annotationsOf(inputs)[annotationWaitFor]); err != nil {
		refuse("metadata", err)
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
func (p *Provider) state() (*client, config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client, p.config
}

// configured returns the client for an operation that cannot do without.
func (p *Provider) configured(urn resource.URN) (*client, error) {
	c, _ := p.state()
	if c == nil {
		return nil, fmt.Errorf("%s: the Kubernetes provider is not configured", urn)
	}
	return c, nil
}

// operation bounds ctx by the timeout of an operation on obj, which is that in the
// resource's options or its kind's, and ends it when the engine cancels. The
// cause of the context says which of them it was.
func (p *Provider) operation(ctx context.Context, seconds float64, obj *unstructured.Unstructured) (context.Context, context.CancelFunc) {
	timeout := timeoutOf(obj)
	if seconds > 0 {
		timeout = time.Duration(seconds * float64(time.Second))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	stop := context.AfterFunc(p.cancelled, func() { cancel(errCancelled) })
	p.mu.Unlock()
	ctx, release := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", timeout))
	return ctx, func() {
		release()
		stop()
		cancel(nil)
	}
}

// located returns the kind, name and annotations of a resource's object. The inputs hold what was
// applied last; a resource that was imported has its kind in its type, like
// kubernetes:apps/v1:StatefulSet, where the core group is called core.
func located(urn resource.URN, id resource.ID, inputs resource.PropertyMap) (*unstructured.Unstructured, error) {
	if id == "" {
		return nil, errors.New(string(urn) + " has no ID")
	}
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetAPIVersion(strings.TrimPrefix(string(urn.Type().Module().Name()), "core/"))
	obj.SetKind(string(urn.Type().Name()))
	if version := inputs["apiVersion"]; version.IsString() {
		obj.SetAPIVersion(version.StringValue())
	}
	namespace, name, namespaced := strings.Cut(string(id), "/")
	if !namespaced {
		namespace, name = "", namespace
	}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	if annotations := annotationsOf(inputs); len(annotations) > 0 {
		obj.SetAnnotations(annotations)
	}
	return obj, nil
}
