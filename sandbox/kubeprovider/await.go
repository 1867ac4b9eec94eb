package kubeprovider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"persia/sandbox/kubeprovider/cluster"
	"persia/sandbox/kubeprovider/object"
	"persia/sandbox/kubeprovider/readiness"
)

const annotationReplaceUnready = "pulumi.com/replaceUnready"

// errNotReady is the error of an object that is there and not ready.
var errNotReady = errors.New("not ready")

// operation bounds ctx by the timeout of an operation on obj, which is that in the
// resource's options or the object's own, and ends it when the engine cancels. The
// cause of the context says which of them it was.
func (p *Provider) operation(
	ctx context.Context, seconds float64, obj *unstructured.Unstructured,
) (context.Context, context.CancelFunc) {
	timeout := readiness.Timeout(obj)
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

// awaitReady waits until obj, as applied, is ready, and returns it as it is
// then. With an error it returns the object as it was last seen.
func (p *Provider) awaitReady(
	ctx context.Context, c *cluster.Client, r dynamic.ResourceInterface, urn resource.URN, obj *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	isReady, err := readiness.Of(ctx, c.Dynamic, obj)
	if err != nil {
		return obj, fmt.Errorf("%s: %w", object.Describe(obj), err)
	}
	renewal := cluster.WatchRenewal
	if obj.GetKind() == "Service" {
		renewal = cluster.ServiceRenewal
	}
	last, message := obj, ""
	err = cluster.Observe(ctx, r, obj.GetName(), renewal, func(live *unstructured.Unstructured) (bool, error) {
		if live == nil || live.GetUID() != obj.GetUID() {
			return false, errors.New("it was deleted")
		}
		last = live
		if live.GetDeletionTimestamp() != nil {
			return false, errors.New("it is being deleted")
		}
		done, waitingFor, err := isReady(live)
		if err == nil && !done && waitingFor != message {
			message = waitingFor
			p.log.Status(ctx, urn, message)
		}
		return done, err
	})
	if message != "" {
		p.log.Status(ctx, urn, "")
	}
	switch {
	case err == nil:
		return last, nil
	case message == "":
		return last, fmt.Errorf("%s is %w: %w", object.Describe(obj), errNotReady, err)
	default:
		return last, fmt.Errorf("%s is %w: %w; last seen: %s", object.Describe(obj), errNotReady, err, message)
	}
}
