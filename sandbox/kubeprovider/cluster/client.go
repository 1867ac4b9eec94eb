package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Client reaches the API server of one cluster.
type Client struct {
	host      string
	namespace string // of namespaced objects that do not name theirs
	// Dynamic reaches objects of any kind.
	Dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterface

	mu     sync.Mutex
	mapper meta.RESTMapper // nil until needed
}

// New returns a client. Namespaced objects that name no namespace are in the given one.
func New(config *rest.Config, namespace string) (*Client, error) {
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
	return &Client{
		host:      config.Host,
		namespace: namespace,
		Dynamic:   dynamicClient,
		discovery: discoveryClient,
	}, nil
}

// mapping finds the resource of a kind. If it does not know the kind, it asks the API server again.
func (c *Client) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
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
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		if failed := c.listed(gvk); failed != nil {
			c.mapper = nil
			return nil, failed
		}
	}
	return mapping, err
}

// listed returns an error if an unknown kind may exist all the same: the list of groups silently
// omits groups that the API server failed to list. A kind that does not exist counts as deleted,
// with all of its objects.
func (c *Client) listed(gvk schema.GroupVersionKind) error {
	resources, err := c.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing what the API server offers in %s: %w", gvk.GroupVersion(), err)
	}
	for _, found := range resources.APIResources {
		if found.Kind == gvk.Kind {
			return fmt.Errorf("the API server did not list %s at first", gvk)
		}
	}
	return nil
}

// AwaitKind waits for a kind that the API server does not offer yet.
func (c *Client) AwaitKind(ctx context.Context, gvk schema.GroupVersionKind) error {
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

// Bind finds where an object of this kind lives, and gives it the default
// namespace if it needs one and names none.
func (c *Client) Bind(obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	mapping, err := c.mapping(obj.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.Dynamic.Resource(mapping.Resource), nil
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(c.namespace)
	}
	return c.Dynamic.Resource(mapping.Resource).Namespace(obj.GetNamespace()), nil
}

// Explain names the server in the error of a request that did not reach it.
func (c *Client) Explain(err error) error {
	if unreached := new(url.Error); errors.As(err, &unreached) {
		return fmt.Errorf("reaching the API server %s: %w", c.host, err)
	}
	return err
}

type urnKey struct{}

// ForResource lets the API server's warnings about a request be shown with the
// resource. Requests without it are dry runs: their warnings would come twice.
func ForResource(ctx context.Context, urn resource.URN) context.Context {
	return context.WithValue(ctx, urnKey{}, urn)
}

// Warnings passes the API server's warnings on to the engine: fields that it
// does not know, deprecated versions, pods that a namespace's level forbids.
type Warnings struct{ Log *provider.Logger }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w Warnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if urn, ok := ctx.Value(urnKey{}).(resource.URN); ok {
		w.Log.Warn(ctx, urn, text)
	}
}
