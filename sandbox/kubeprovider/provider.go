package kubeprovider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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
// one for each provider resource of a stack. Serve it with [provider.Serve].
type Provider struct {
	provider.Base
	// plugins is the folder of the credential plugins that take precedence over the PATH.
	plugins string

	// client is nil until the provider is configured: the cluster may not exist yet.
	client atomic.Pointer[client]

	mu        sync.Mutex
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
	// Patch resources and Helm's carry another kind than the one in their type, or none:
	// applying them would take over, and later delete, what they only adjust.
	inputs := req.News
	if kind := inputs["kind"]; !kind.IsString() || !inputs["apiVersion"].IsString() || req.Type.Name() != tokens.TypeName(kind.StringValue()) {
		refuse("kind", fmt.Errorf("the sandbox's Kubernetes provider has no %s; it takes Kubernetes objects, one resource each", req.Type))
		return resp, nil
	}
	obj, err := objectOf(inputs)
	if err != nil {
		return resp, nil // the update tells
	}
	if obj.GetName() == "" {
		refuse("metadata", errors.New("metadata.name is required: the sandbox's Kubernetes provider does not make up names"))
	}
	if _, err := unmet(obj); err != nil {
		refuse("metadata", err)
	}
	return resp, nil
}

// configured returns the client for an operation that cannot do without.
func (p *Provider) configured(urn resource.URN) (*client, error) {
	if c := p.client.Load(); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("%s: the Kubernetes provider is not configured", urn)
}

// operation bounds ctx by the timeout of an operation on obj, which is that in the resource's options or its kind's,
// and ends it when the engine cancels. The cause of the context says which of them it was.
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
