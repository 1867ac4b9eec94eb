package kubeprovider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"persia/sandbox/provider"
)

const (
	// The API server lists a kind some moments after its definition is
	// established.
	kindTimeout = 15 * time.Second
	// pause keeps a client from flooding an API server that is starting.
	pause = 500 * time.Millisecond
	// watchRenewal is the time after which a watch is renewed. The state of an object may depend on time
	// alone, and a watch may stop silently. The readiness of a Service is a matter of the pods that it
	// leads to.
	watchRenewal   = time.Minute
	serviceRenewal = 2 * time.Second
)

// client reaches the API server of one cluster.
type client struct {
	dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterface

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

// errNoKind is the error of a kind that the API server does not have. It counts as deleted, with all of
// its objects.
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

// awaitKind waits for a kind that the API server does not offer yet.
func (c *client) awaitKind(ctx context.Context, gvk schema.GroupVersionKind) error {
	ctx, cancel := context.WithTimeout(ctx, kindTimeout)
	defer cancel()
	for {
		_, err := c.kind(gvk)
		if !errors.Is(err, errNoKind) || !sleep(ctx, pause) {
			return err
		}
	}
}

// bind finds where an object of this kind lives, and gives it the default
// namespace if it needs one and names none.
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

// observe calls see with the current object, or nil if it does not exist, and again each time it
// changes, until see returns true or an error, or ctx ends. It survives watches that expire and API
// servers that restart. It calls see after each renewal, changed or not.
func observe(ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured, see func(*unstructured.Unstructured) (bool, error)) error {
	for {
		done, err := observeOnce(ctx, r, obj, see)
		switch {
		case done:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		if !sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// observeOnce observes until the watch ends. It returns an error only where
// trying again cannot help.
func observeOnce(ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured, see func(*unstructured.Unstructured) (bool, error)) (bool, error) {
	seconds := int64(watchRenewal.Seconds())
	if obj.GetKind() == "Service" {
		seconds = int64(serviceRenewal.Seconds())
	}
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, obj.GetName()).String()}
	list, err := r.List(ctx, options)
	switch {
	case apierrors.IsNotFound(err):
		return see(nil) // the kind is gone, and all its objects with it
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return false, fmt.Errorf("watching %s: %w", describe(obj), err)
	case err != nil:
		return false, nil
	}
	var current *unstructured.Unstructured
	if len(list.Items) > 0 {
		current = &list.Items[0]
	}
	if done, err := see(current); done || err != nil {
		return done, err
	}
	options.ResourceVersion, options.TimeoutSeconds = list.GetResourceVersion(), &seconds
	watcher, err := r.Watch(ctx, options)
	if err != nil {
		return false, nil
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if !slices.Contains([]watch.EventType{watch.Added, watch.Modified, watch.Deleted}, event.Type) {
			return false, nil
		}
		var live *unstructured.Unstructured
		if event.Type != watch.Deleted {
			live, _ = event.Object.(*unstructured.Unstructured)
		}
		if done, err := see(live); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// sleep returns false when ctx ends first.
func sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
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
