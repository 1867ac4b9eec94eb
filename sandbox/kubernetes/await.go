package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

const (
	annotationSkipAwait = "pulumi.com/skipAwait"
	annotationWaitFor   = "pulumi.com/waitFor"
	annotationTimeout   = "pulumi.com/timeoutSeconds"

	annotationReplaceUnready = "pulumi.com/replaceUnready"

	defaultTimeout = 10 * time.Minute
)

// errNotReady is the error of an object that is there and not ready.
var errNotReady = errors.New("not ready")

// operation bounds ctx by the timeout of an operation on obj, and ends it when
// the engine cancels. The cause of the context says which of them it was.
func (p *Provider) operation(
	ctx context.Context, seconds float64, obj *unstructured.Unstructured,
) (context.Context, context.CancelFunc) {
	timeout := timeoutOf(seconds, obj)
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

// timeoutOf is the timeout in the resource's options, or in its annotation, or
// the default of its kind.
func timeoutOf(seconds float64, obj *unstructured.Unstructured) time.Duration {
	if seconds > 0 {
		return time.Duration(seconds * float64(time.Second))
	}
	if n, err := strconv.Atoi(obj.GetAnnotations()[annotationTimeout]); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	if rule, ok := kindRules[obj.GroupVersionKind().GroupKind()]; ok && rule.timeout > 0 {
		return rule.timeout
	}
	return defaultTimeout
}

// readinessOf chooses how to tell that an object is ready.
func (c *client) readinessOf(ctx context.Context, obj *unstructured.Unstructured) (readiness, error) {
	annotations := obj.GetAnnotations()
	if skipsAwait(obj) {
		return always, nil
	}
	if waitFor := annotations[annotationWaitFor]; waitFor != "" {
		conditions, err := parseWaitFor(waitFor)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", annotationWaitFor, err)
		}
		return func(obj *unstructured.Unstructured) (bool, string, error) { return evaluate(conditions, obj) }, nil
	}
	if rule, ok := kindRules[obj.GroupVersionKind().GroupKind()]; ok {
		return rule.ready(ctx, c), nil
	}
	return always, nil
}

func skipsAwait(obj *unstructured.Unstructured) bool {
	return strings.EqualFold(obj.GetAnnotations()[annotationSkipAwait], "true")
}

func always(*unstructured.Unstructured) (bool, string, error) { return true, "", nil }

func evaluate(conditions []waitCondition, obj *unstructured.Unstructured) (bool, string, error) {
	var unmet []string
	for _, condition := range conditions {
		met, err := condition.met(obj)
		if err != nil {
			return false, "", err
		}
		if !met {
			unmet = append(unmet, condition.text)
		}
	}
	return len(unmet) == 0, "waiting for " + strings.Join(unmet, ", "), nil
}

// awaitReady waits until obj, as applied, is ready, and returns it as it is
// then. With an error it returns the object as it was last seen.
func (p *Provider) awaitReady(
	ctx context.Context, c *client, r dynamic.ResourceInterface, urn resource.URN, obj *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	ready, err := c.readinessOf(ctx, obj)
	if err != nil {
		return obj, fmt.Errorf("%s: %w", describe(obj), err)
	}
	renewal := watchRenewal
	if obj.GetKind() == "Service" {
		renewal = serviceRenewal
	}
	last, message := obj, ""
	err = observe(ctx, r, obj.GetName(), renewal, func(live *unstructured.Unstructured) (bool, error) {
		if live == nil || live.GetUID() != obj.GetUID() {
			return false, errors.New("it was deleted")
		}
		last = live
		if live.GetDeletionTimestamp() != nil {
			return false, errors.New("it is being deleted")
		}
		done, waitingFor, err := ready(live)
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
		return last, fmt.Errorf("%s is %w: %w", describe(obj), errNotReady, err)
	default:
		return last, fmt.Errorf("%s is %w: %w; last seen: %s", describe(obj), errNotReady, err, message)
	}
}
