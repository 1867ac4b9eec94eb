package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"persia/sandbox/provider"
)

const (
	// A stack of hundreds of objects is applied and watched at once: the
	// default of 5 requests a second would be what bounds it.
	queriesPerSecond = 200
	burst            = 400

	// The API server lists a kind some moments after its definition is
	// established.
	kindTimeout = 15 * time.Second
	kindPause   = 500 * time.Millisecond
)

// client reaches the API server of one cluster.
type client struct {
	host      string
	namespace string // of namespaced objects that do not name theirs
	dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterface

	mu     sync.Mutex
	mapper meta.RESTMapper // nil until needed
}

func newClient(config *rest.Config, namespace string) (*client, error) {
	config.QPS, config.Burst = queriesPerSecond, burst
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("discovery client for %s: %w", config.Host, err)
	}
	return &client{
		host:      config.Host,
		namespace: namespace,
		dynamic:   dynamicClient,
		discovery: discoveryClient,
	}, nil
}

// mapping finds the resource of a kind. What is not found is looked for again
// in what the API server offers now.
func (c *client) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mapper != nil {
		mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if !meta.IsNoMatchError(err) {
			return mapping, err
		}
	}
	groups, err := restmapper.GetAPIGroupResources(c.discovery)
	if err != nil {
		return nil, fmt.Errorf("listing what the API server offers: %w", err)
	}
	c.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	return c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// awaitKind waits for a kind that the API server does not offer yet.
func (c *client) awaitKind(ctx context.Context, gvk schema.GroupVersionKind) error {
	ctx, cancel := context.WithTimeout(ctx, kindTimeout)
	defer cancel()
	for {
		_, err := c.mapping(gvk)
		if !meta.IsNoMatchError(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(kindPause):
		}
	}
}

// bind finds where an object of this kind lives, and gives it the default
// namespace if it needs one and names none.
func (c *client) bind(obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	mapping, err := c.mapping(obj.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.dynamic.Resource(mapping.Resource), nil
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(c.namespace)
	}
	return c.dynamic.Resource(mapping.Resource).Namespace(obj.GetNamespace()), nil
}

// explain names the server in the error of a request that did not reach it.
func (c *client) explain(err error) error {
	if unreached := new(url.Error); errors.As(err, &unreached) {
		return fmt.Errorf("reaching the API server %s: %w", c.host, err)
	}
	return err
}

type urnKey struct{}

// forResource lets the API server's warnings about a request be shown with the
// resource. Requests without it are dry runs: their warnings would come twice.
func forResource(ctx context.Context, urn resource.URN) context.Context {
	return context.WithValue(ctx, urnKey{}, urn)
}

// warnings passes the API server's warnings on to the engine: fields that it
// does not know, deprecated versions, pods that a namespace's level forbids.
type warnings struct{ log *provider.Logger }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if urn, ok := ctx.Value(urnKey{}).(resource.URN); ok {
		w.log.Warn(ctx, urn, text)
	}
}
