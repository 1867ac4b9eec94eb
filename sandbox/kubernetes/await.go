package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

const (
	annotationSkipAwait = "pulumi.com/skipAwait"
	annotationWaitFor   = "pulumi.com/waitFor"
	annotationTimeout   = "pulumi.com/timeoutSeconds"

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
// the default.
func timeoutOf(seconds float64, obj *unstructured.Unstructured) time.Duration {
	if seconds > 0 {
		return time.Duration(seconds * float64(time.Second))
	}
	if n, err := strconv.Atoi(obj.GetAnnotations()[annotationTimeout]); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	return defaultTimeout
}

// A readiness says whether an object is ready, and if not, what it waits for.
// An error means that it will not be.
type readiness func(*unstructured.Unstructured) (ready bool, waitingFor string, err error)

// readinessOf chooses how to tell that an object is ready.
func (c *client) readinessOf(ctx context.Context, obj *unstructured.Unstructured) (readiness, error) {
	annotations := obj.GetAnnotations()
	if annotations[annotationSkipAwait] == "true" {
		return always, nil
	}
	if waitFor := annotations[annotationWaitFor]; waitFor != "" {
		conditions, err := parseWaitFor(waitFor)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", annotationWaitFor, err)
		}
		return func(obj *unstructured.Unstructured) (bool, string, error) { return evaluate(conditions, obj) }, nil
	}
	switch obj.GroupVersionKind() {
	case schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}:
		return phaseReady("Active"), nil
	case schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}:
		// A claim that comes before the volume controller has seen the volume
		// stays unbound until the controller's next round, for up to 15 seconds.
		return phaseReady("Available", "Bound"), nil
	case schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}:
		if c.bindsOnFirstUse(ctx, obj) {
			return always, nil
		}
	case schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}:
		return jobReady, nil
	}
	return kindReady, nil
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

// phaseReady is for kinds that have a phase of which kstatus knows nothing: it
// takes them for ready as soon as they are there.
func phaseReady(phases ...string) readiness {
	return func(obj *unstructured.Unstructured) (bool, string, error) {
		phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
		return slices.Contains(phases, phase), fmt.Sprintf("phase: %s", phase), nil
	}
}

// jobReady says whether a Job has done its work. kstatus takes one that has begun for
// ready, and the official provider does not.
func jobReady(obj *unstructured.Unstructured) (bool, string, error) {
	if hasCondition(obj, "Complete", "True") {
		return true, "", nil
	}
	if hasCondition(obj, "Failed", "True") {
		return false, "", errors.New("the Job has failed")
	}
	return false, "waiting for the Job to complete", nil
}

func kindReady(obj *unstructured.Unstructured) (bool, string, error) {
	result, err := status.Compute(obj)
	if err != nil {
		return false, "", err
	}
	if result.Status == status.FailedStatus {
		return false, "", errors.New(result.Message)
	}
	return result.Status == status.CurrentStatus, result.Message, nil
}

// bindsOnFirstUse says whether a claim stays unbound until a pod uses it:
// waiting for it would wait for what comes later.
func (c *client) bindsOnFirstUse(ctx context.Context, claim *unstructured.Unstructured) bool {
	class, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
	volume, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName")
	if class == "" || volume != "" {
		return false
	}
	classes := c.dynamic.Resource(schema.GroupVersionResource{
		Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses",
	})
	storageClass, err := classes.Get(ctx, class, metav1.GetOptions{})
	if err != nil {
		// A name that no class has only matches claims with volumes.
		return false
	}
	mode, _, _ := unstructured.NestedString(storageClass.Object, "volumeBindingMode")
	return mode == "WaitForFirstConsumer"
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
	last, message := obj, ""
	err = observe(ctx, r, obj.GetName(), func(live *unstructured.Unstructured) (bool, error) {
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
