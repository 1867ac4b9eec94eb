package kubeprovider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"persia/sandbox/provider"
)

const (
	// The API server lists a kind some moments after its definition is established.
	kindTimeout = 15 * time.Second
	// pause is the time between two looks at an object.
	pause = 250 * time.Millisecond
)

// client reaches the API server of one cluster.
type client struct {
	dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterface
	upsert    bool // creates take over objects that are there

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]metav1.APIResource
}

func newClient(config *rest.Config) (*client, error) {
	config.QPS = -1 // the API server is on this machine and protects itself
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	return &client{dynamic: dynamicClient, discovery: discoveryClient, kinds: map[schema.GroupVersionKind]metav1.APIResource{}}, err
}

// errNoKind is the error of a kind that the API server does not have. It counts as deleted, with all of its objects.
var errNoKind = errors.New("the API server has no such kind")

// kind finds the resource of a kind. It asks the API server, unless it has found it before.
func (c *client) kind(gvk schema.GroupVersionKind) (metav1.APIResource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.kinds[gvk]; ok {
		return found, nil
	}
	list, err := c.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return metav1.APIResource{}, fmt.Errorf("%s: %w", gvk, errNoKind)
	}
	if err != nil {
		return metav1.APIResource{}, fmt.Errorf("listing what the API server offers in %s: %w", gvk.GroupVersion(), err)
	}
	for _, found := range list.APIResources {
		if !strings.Contains(found.Name, "/") { // a subresource
			c.kinds[gvk.GroupVersion().WithKind(found.Kind)] = found
		}
	}
	if found, ok := c.kinds[gvk]; ok {
		return found, nil
	}
	return metav1.APIResource{}, fmt.Errorf("%s: %w", gvk, errNoKind)
}

// awaitKind is bind for a kind that the API server may not offer yet.
func (c *client) awaitKind(ctx context.Context, obj *unstructured.Unstructured) (r dynamic.ResourceInterface, err error) {
	_ = wait.PollUntilContextTimeout(ctx, pause, kindTimeout, true, func(context.Context) (bool, error) {
		r, err = c.bind(obj)
		return !errors.Is(err, errNoKind), nil
	})
	return r, err
}

// bind finds where an object of this kind lives, and gives it the default namespace if it needs one and names none.
func (c *client) bind(obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := obj.GroupVersionKind()
	found, err := c.kind(gvk)
	if err != nil {
		return nil, err
	}
	resources := c.dynamic.Resource(gvk.GroupVersion().WithResource(found.Name))
	if !found.Namespaced {
		return resources, nil
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	return resources.Namespace(obj.GetNamespace()), nil
}

// find returns an object as it is in the cluster, or nil if it or its kind is gone.
func (c *client) find(ctx context.Context, obj *unstructured.Unstructured) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
	r, err := c.bind(obj)
	if errors.Is(err, errNoKind) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	live, err := r.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	return r, live, err
}

// observe calls see with the current object, or nil if it or its kind is gone, until see returns true or
// an error, or ctx ends. It survives API servers that restart.
func observe(ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured,
	see func(*unstructured.Unstructured) (bool, error)) error {
	err := wait.PollUntilContextCancel(ctx, pause, true, func(ctx context.Context) (bool, error) {
		live, err := r.Get(ctx, obj.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return see(nil)
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return false, err
		case err != nil:
			return false, nil
		}
		return see(live)
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
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
