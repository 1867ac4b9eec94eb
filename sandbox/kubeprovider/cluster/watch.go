package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

const (
	// The time after which a watch is renewed. The state of an object may depend on time alone, and
	// a watch may stop silently.
	WatchRenewal = time.Minute

	// ServiceRenewal is the one for a Service, whose readiness is a matter of the
	// pods that it leads to.
	ServiceRenewal = 2 * time.Second

	// watchPause keeps a client from flooding an API server that is starting.
	watchPause = 500 * time.Millisecond
)

// Observe calls see with the current object, or nil if it does not exist, and again each time it
// changes, until see returns true or an error, or ctx ends. It survives watches that expire and API
// servers that restart. It calls see after each renewal, changed or not.
func Observe(
	ctx context.Context, r dynamic.ResourceInterface, name string, renewal time.Duration,
	see func(*unstructured.Unstructured) (bool, error),
) error {
	for {
		done, err := observeOnce(ctx, r, name, renewal, see)
		if ctx.Err() != nil && !done {
			return context.Cause(ctx)
		}
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(watchPause):
		}
	}
}

// observeOnce observes until the watch ends. It returns an error only where
// trying again cannot help.
func observeOnce(
	ctx context.Context, r dynamic.ResourceInterface, name string, renewal time.Duration,
	see func(*unstructured.Unstructured) (bool, error),
) (bool, error) {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	list, err := r.List(ctx, metav1.ListOptions{FieldSelector: selector})
	switch {
	case err == nil:
	case apierrors.IsNotFound(err):
		return see(nil) // the kind is gone, and all its objects with it
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return false, fmt.Errorf("watching %s: %w", name, err)
	default:
		return false, nil
	}
	var current *unstructured.Unstructured
	if len(list.Items) > 0 {
		current = &list.Items[0]
	}
	if done, err := see(current); done || err != nil {
		return done, err
	}

	timeout := int64(renewal / time.Second)
	watcher, err := r.Watch(ctx, metav1.ListOptions{
		FieldSelector: selector, ResourceVersion: list.GetResourceVersion(), TimeoutSeconds: &timeout,
	})
	if err != nil {
		return false, nil
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		var obj *unstructured.Unstructured
		switch event.Type {
		case watch.Added, watch.Modified:
			obj, _ = event.Object.(*unstructured.Unstructured)
		case watch.Deleted:
		default:
			return false, nil
		}
		if done, err := see(obj); done || err != nil {
			return done, err
		}
	}
	return false, nil
}
