package kubeprovider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// readiness returns what an object that is not ready waits for, or "". An error means that it never will be ready.
type readiness func(ctx context.Context, c *client, obj *unstructured.Unstructured) (waitsFor string, err error)

// kindRule says how the objects of a kind are waited for.
type kindRule struct {
	ready readiness
	// timeout is the default, ten minutes where it is zero.
	timeout time.Duration
	// onRead is set for the kinds that a refresh finds unready, too. It ignores pulumi.com/waitFor: the
	// official provider reads by its own rules (Read in provider/pkg/await/await.go).
	onRead bool
}

// kindRules are the kinds of this program that the official provider waits for (provider/pkg/await/awaiters.go).
// Objects of any other kind are ready as soon as they are there, unless pulumi.com/waitFor says otherwise: namespaces
// and custom resources with them, and their definitions.
var kindRules = map[schema.GroupKind]kindRule{
	{Group: "apps", Kind: "DaemonSet"}:            {ready: computed, onRead: true},
	{Group: "apps", Kind: "Deployment"}:           {ready: computed, onRead: true},
	{Group: "apps", Kind: "StatefulSet"}:          {ready: computed, onRead: true},
	{Group: "batch", Kind: "Job"}:                 {ready: jobReady, onRead: true},
	{Group: "networking.k8s.io", Kind: "Ingress"}: {ready: balanced, onRead: true},
	{Kind: "Service"}:                             {ready: serviceReady, onRead: true},
	{Kind: "PersistentVolume"}:                    {ready: volumeReady, timeout: 5 * time.Minute},
	{Kind: "PersistentVolumeClaim"}:               {ready: claimReady, timeout: 5 * time.Minute},
}

// timeoutOf returns how long an object is waited for.
func timeoutOf(obj *unstructured.Unstructured) time.Duration {
	return cmp.Or(kindRules[obj.GroupVersionKind().GroupKind()].timeout, 10*time.Minute)
}

// skipsAwait says whether the program asks that an object is not waited for.
func skipsAwait(obj *unstructured.Unstructured) bool {
	return strings.EqualFold(obj.GetAnnotations()["pulumi.com/skipAwait"], "true")
}

// readinessOf returns the rule that decides whether an object is ready.
func readinessOf(obj *unstructured.Unstructured) readiness {
	rule := kindRules[obj.GroupVersionKind().GroupKind()].ready
	switch {
	case skipsAwait(obj):
		return nil
	case obj.GetAnnotations()[annotationWaitFor] != "":
		return asAnnotated
	}
	return rule
}

// asAnnotated is for objects with conditions of their own.
func asAnnotated(_ context.Context, _ *client, obj *unstructured.Unstructured) (string, error) {
	conditions, err := unmet(obj)
	if err != nil || len(conditions) == 0 {
		return "", err
	}
	return "waiting for " + strings.Join(conditions, ", "), nil
}

// awaitReady waits until obj, as applied, is ready, and returns it as it is
// then. With an error it returns the object as it was last seen.
func (p *Provider) awaitReady(ctx context.Context, c *client, urn resource.URN,
	obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ready := readinessOf(obj)
	if ready == nil {
		return obj, nil
	}
	r, err := c.bind(obj)
	if err != nil {
		return obj, err
	}
	last, message := obj, ""
	err = observe(ctx, r, obj, func(live *unstructured.Unstructured) (bool, error) {
		if live == nil || live.GetUID() != obj.GetUID() || live.GetDeletionTimestamp() != nil {
			return false, errors.New("it is deleted")
		}
		last = live
		waitsFor, err := ready(ctx, c, live)
		if err != nil || waitsFor == "" {
			return true, err
		}
		if waitsFor += unscheduled(ctx, c, live); waitsFor != message {
			message = waitsFor
			p.Log.Status(ctx, urn, message)
		}
		return false, nil
	})
	if message != "" {
		p.Log.Status(ctx, urn, "")
	}
	switch {
	case err == nil:
		return last, nil
	case message == "":
		return last, fmt.Errorf("%s is not ready: %w", describe(obj), err)
	default:
		return last, fmt.Errorf("%s is not ready: %w; last seen: %s", describe(obj), err, message)
	}
}

// unscheduled says why one of a workload's pods has no node, or nothing.
func unscheduled(ctx context.Context, c *client, workload *unstructured.Unstructured) string {
	selector, found, _ := unstructured.NestedStringMap(workload.Object, "spec", "selector", "matchLabels")
	if !found {
		return ""
	}
	pods, err := c.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(workload.GetNamespace()).
		List(ctx, metav1.ListOptions{LabelSelector: labels.FormatLabels(selector), FieldSelector: "spec.nodeName="})
	if err != nil {
		return "" // The next look asks again.
	}
	for _, pod := range pods.Items {
		for _, condition := range conditionsOf(&pod) {
			if condition["type"] == string(corev1.PodScheduled) && condition["status"] == "False" {
				return fmt.Sprintf("; %s: %v", pod.GetName(), condition["message"])
			}
		}
	}
	return ""
}

// awaitGone waits until obj is gone, or another object has its name.
func (p *Provider) awaitGone(ctx context.Context, r dynamic.ResourceInterface, urn resource.URN, obj *unstructured.Unstructured) error {
	message := remaining(obj)
	err := observe(ctx, r, obj, func(live *unstructured.Unstructured) (bool, error) {
		if live == nil || live.GetUID() != obj.GetUID() {
			return true, nil
		}
		if waitingFor := remaining(live); waitingFor != message {
			message = waitingFor
			p.Log.Status(ctx, urn, message)
		}
		retryCleanup(ctx, r, live)
		return false, nil
	})
	p.Log.Status(ctx, urn, "")
	if err != nil {
		return fmt.Errorf("%s is not gone: %w; %s", describe(obj), err, message)
	}
	return nil
}

// retryCleanup keeps the deletion of a custom resource definition from pausing for up to five minutes, as it
// may with the official provider.
//
// The API server first deletes a definition's objects. If it cannot list them, because the cache of
// an unused kind is still opening, it writes that into the definition's status and tries again. If it
// has not yet seen its own write, it takes the conflict for another client's change and waits for
// that change's event, but then ignores the event as its own, until the informer's resync
// (crd_finalizer.go of apiextensions-apiserver 0.35). Any other change of the definition wakes it.
func retryCleanup(ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured) {
	for _, condition := range conditionsOf(obj) {
		if obj.GetKind() == "CustomResourceDefinition" && condition["reason"] == "InstanceDeletionFailed" {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"sandbox/cleanup-retried":%q}}}`, obj.GetResourceVersion())
			_, _ = r.Patch(ctx, obj.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}) // the next look tries again
		}
	}
}

// remaining explains why an object is not deleted yet.
func remaining(obj *unstructured.Unstructured) string {
	var reasons []string
	finalizers := obj.GetFinalizers()
	if obj.GetKind() == "Namespace" {
		for _, condition := range conditionsOf(obj) {
			if condition["status"] == "True" && condition["message"] != nil {
				reasons = append(reasons, fmt.Sprint(condition["message"]))
			}
		}
		own, _, _ := unstructured.NestedStringSlice(obj.Object, "spec", "finalizers")
		finalizers = append(finalizers, own...)
	}
	if len(finalizers) > 0 {
		reasons = append(reasons, "finalizers: "+strings.Join(finalizers, ", "))
	}
	if len(reasons) == 0 {
		return "waiting for it to be deleted"
	}
	return "waiting for " + strings.Join(reasons, "; ")
}

// computed is for workloads that are to run.
func computed(_ context.Context, _ *client, obj *unstructured.Unstructured) (string, error) {
	result, err := status.Compute(obj)
	switch {
	case err != nil || result.Status == status.CurrentStatus:
		return "", err
	case result.Status == status.FailedStatus:
		return "", errors.New(result.Message)
	}
	return result.Status.String() + ": " + result.Message, nil
}

// jobReady says whether a Job has done its work.
func jobReady(_ context.Context, _ *client, obj *unstructured.Unstructured) (string, error) {
	switch {
	case hasCondition(obj, "Failed", "True"):
		return "", errors.New("the Job has failed")
	case hasCondition(obj, "Complete", "True"):
		return "", nil
	}
	return "waiting for the Job to complete", nil
}

func volumeReady(_ context.Context, _ *client, obj *unstructured.Unstructured) (string, error) {
	return phaseIs(obj, "Available", "Bound")
}

// claimReady says whether a claim is bound, or pending where its class binds it when a pod first uses it: waiting for
// it would wait for what comes later. A name that no class has only matches claims with volumes.
func claimReady(ctx context.Context, c *client, claim *unstructured.Unstructured) (string, error) {
	if class := text(claim, "spec", "storageClassName"); class != "" {
		classes := c.dynamic.Resource(schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"})
		found, err := classes.Get(ctx, class, metav1.GetOptions{})
		if err == nil && text(found, "volumeBindingMode") == "WaitForFirstConsumer" {
			return phaseIs(claim, "Pending", "Bound")
		}
	}
	return phaseIs(claim, "Bound")
}

func phaseIs(obj *unstructured.Unstructured, phases ...string) (string, error) {
	phase := text(obj, "status", "phase")
	if slices.Contains(phases, phase) {
		return "", nil
	}
	return "phase: " + phase, nil
}

// balanced says whether a load balancer has an address for an object.
func balanced(_ context.Context, _ *client, obj *unstructured.Unstructured) (string, error) {
	if addresses, _, _ := unstructured.NestedSlice(obj.Object, "status", "loadBalancer", "ingress"); len(addresses) > 0 {
		return "", nil
	}
	return "waiting for an address of the load balancer", nil
}

// serviceReady says whether a Service leads to no pod that is not ready, and has an address where a load balancer gives
// one. One that leads to no pod at all is ready: its pods may be what comes next (await/service.go since pull request
// 3142). Of the pods of a headless Service, or of one without a selector, nothing is waited for.
func serviceReady(ctx context.Context, c *client, obj *unstructured.Unstructured) (string, error) {
	if text(obj, "spec", "type") == string(corev1.ServiceTypeLoadBalancer) {
		if waitsFor, err := balanced(ctx, c, obj); waitsFor != "" {
			return waitsFor, err
		}
	}
	selector, _, _ := unstructured.NestedMap(obj.Object, "spec", "selector")
	if text(obj, "spec", "clusterIP") == corev1.ClusterIPNone || len(selector) == 0 {
		return "", nil
	}
	unready, err := unreadyEndpoints(ctx, c, obj)
	if err != nil || unready == 0 {
		return "", err
	}
	return fmt.Sprintf("waiting for %d pods that the Service leads to", unready), nil
}

// unreadyEndpoints counts the pods that a Service leads to and that are not ready.
// Where they cannot be listed now, there is one: the next look asks again.
func unreadyEndpoints(ctx context.Context, c *client, service *unstructured.Unstructured) (int, error) {
	list, err := c.dynamic.Resource(discoveryv1.SchemeGroupVersion.WithResource("endpointslices")).Namespace(service.GetNamespace()).
		List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service.GetName()})
	if err != nil {
		return 1, nil
	}
	unready := 0
	for _, item := range list.Items {
		var slice discoveryv1.EndpointSlice
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &slice); err != nil {
			return 0, fmt.Errorf("EndpointSlice %s: %w", item.GetName(), err)
		}
		for _, endpoint := range slice.Endpoints {
			ready, terminating := endpoint.Conditions.Ready, endpoint.Conditions.Terminating
			if ready != nil && !*ready && (terminating == nil || !*terminating) {
				unready++
			}
		}
	}
	return unready, nil
}

func text(obj *unstructured.Unstructured, fields ...string) string {
	found, _, _ := unstructured.NestedString(obj.Object, fields...)
	return found
}
