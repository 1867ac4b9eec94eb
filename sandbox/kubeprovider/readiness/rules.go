package readiness

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// Readiness reports whether an object is ready, and what it waits for. An error means that it never
// will be.
type Readiness func(*unstructured.Unstructured) (ready bool, waitingFor string, err error)

// kindRule says how the objects of a kind are waited for.
type kindRule struct {
	ready func(context.Context, dynamic.Interface) Readiness
	// timeout is the default.
	timeout time.Duration
	// onRead is set for the kinds that a refresh finds unready, too.
	onRead bool
}

const (
	volumeTimeout = 5 * time.Minute
	quotaTimeout  = time.Minute
	tokenTimeout  = 5 * time.Second
)

// kindRules are the kinds that the official provider waits for
// (provider/pkg/await/awaiters.go). Objects of any other kind are ready as soon
// as they are there, unless pulumi.com/waitFor says otherwise: namespaces and
// custom resources with them, and their definitions.
var kindRules = map[schema.GroupKind]kindRule{
	{Group: "apps", Kind: "DaemonSet"}:            {ready: fixed(kindReady), onRead: true},
	{Group: "apps", Kind: "Deployment"}:           {ready: fixed(kindReady), onRead: true},
	{Group: "apps", Kind: "StatefulSet"}:          {ready: fixed(statefulSetReady), onRead: true},
	{Group: "batch", Kind: "Job"}:                 {ready: fixed(jobReady), onRead: true},
	{Group: "networking.k8s.io", Kind: "Ingress"}: {ready: fixed(balanced), onRead: true},
	{Kind: "Pod"}:                   {ready: fixed(kindReady), onRead: true},
	{Kind: "Service"}:               {ready: serviceReady, onRead: true},
	{Kind: "ReplicationController"}: {ready: fixed(kindReady)},
	{Kind: "PersistentVolume"}:      {ready: fixed(phaseReady("Available", "Bound")), timeout: volumeTimeout},
	{Kind: "PersistentVolumeClaim"}: {ready: claimReady, timeout: volumeTimeout},
	{Kind: "ResourceQuota"}:         {ready: fixed(quotaReady), timeout: quotaTimeout},
	{Kind: "Secret"}:                {ready: fixed(tokenReady), timeout: tokenTimeout},
}

func fixed(r Readiness) func(context.Context, dynamic.Interface) Readiness {
	return func(context.Context, dynamic.Interface) Readiness { return r }
}

// phaseReady is for kinds that have a phase.
func phaseReady(phases ...string) Readiness {
	return func(obj *unstructured.Unstructured) (bool, string, error) {
		phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
		return slices.Contains(phases, phase), fmt.Sprintf("phase: %s", phase), nil
	}
}

// jobReady says whether a Job has done its work.
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

// statefulSetReady says whether all pods are ready and, where the controller
// replaces them itself, of the newest revision: one that rolls out in parts never
// is (await/statefulset.go).
func statefulSetReady(obj *unstructured.Unstructured) (bool, string, error) {
	count := func(fields ...string) int64 {
		n, _, _ := unstructured.NestedInt64(obj.Object, fields...)
		return n
	}
	text := func(fields ...string) string {
		s, _, _ := unstructured.NestedString(obj.Object, fields...)
		return s
	}
	want, ready := count("spec", "replicas"), count("status", "readyReplicas")
	progress := fmt.Sprintf("%d of %d pods are ready", ready, want)
	if count("status", "observedGeneration") < obj.GetGeneration() {
		return false, "waiting for the controller", nil
	}
	if count("status", "replicas") != want || ready != want {
		return false, progress, nil
	}
	if text("spec", "updateStrategy", "type") == "OnDelete" && obj.GetGeneration() > 1 {
		return true, "", nil
	}
	current, newest := text("status", "currentRevision"), text("status", "updateRevision")
	if count("status", "currentReplicas") != want || current == "" || current != newest {
		return false, progress + "; waiting for revision " + newest, nil
	}
	return true, "", nil
}

// balanced says whether a load balancer has an address for an object.
func balanced(obj *unstructured.Unstructured) (bool, string, error) {
	addresses, _, _ := unstructured.NestedSlice(obj.Object, "status", "loadBalancer", "ingress")
	return len(addresses) > 0, "waiting for an address of the load balancer", nil
}

func quotaReady(obj *unstructured.Unstructured) (bool, string, error) {
	want, _, _ := unstructured.NestedMap(obj.Object, "spec", "hard")
	have, _, _ := unstructured.NestedMap(obj.Object, "status", "hard")
	return reflect.DeepEqual(want, have), "waiting for the quota to be counted", nil
}

// tokenReady says whether a Secret that a controller fills has its token.
func tokenReady(obj *unstructured.Unstructured) (bool, string, error) {
	if kind, _, _ := unstructured.NestedString(obj.Object, "type"); kind != string(corev1.SecretTypeServiceAccountToken) {
		return true, "", nil
	}
	data, _, _ := unstructured.NestedMap(obj.Object, "data")
	return len(data) > 0, "waiting for the token", nil
}

// serviceReady says whether a Service leads to no pod that is not ready, and has an
// address where a load balancer gives one. One that leads to no pod at all is ready:
// its pods may be what comes next (await/service.go since pull request 3142). Of the
// pods of a headless Service, or of one without a selector, nothing is waited for.
func serviceReady(ctx context.Context, c dynamic.Interface) Readiness {
	return func(obj *unstructured.Unstructured) (bool, string, error) {
		kind, _, _ := unstructured.NestedString(obj.Object, "spec", "type")
		if kind == string(corev1.ServiceTypeLoadBalancer) {
			if ready, waitingFor, err := balanced(obj); !ready {
				return ready, waitingFor, err
			}
		}
		clusterIP, _, _ := unstructured.NestedString(obj.Object, "spec", "clusterIP")
		selector, _, _ := unstructured.NestedMap(obj.Object, "spec", "selector")
		if clusterIP == corev1.ClusterIPNone || kind == string(corev1.ServiceTypeExternalName) || len(selector) == 0 {
			return true, "", nil
		}
		unready, err := unreadyEndpoints(ctx, c, obj)
		return unready == 0, fmt.Sprintf("waiting for %d pods that the Service leads to", unready), err
	}
}

// unreadyEndpoints counts the pods that a Service leads to and that are not ready.
// Where they cannot be listed now, there is one: the next look asks again.
func unreadyEndpoints(ctx context.Context, c dynamic.Interface, service *unstructured.Unstructured) (int, error) {
	list, err := c.Resource(discoveryv1.SchemeGroupVersion.WithResource("endpointslices")).
		Namespace(service.GetNamespace()).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{discoveryv1.LabelServiceName: service.GetName()}.String(),
	})
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
			is := func(condition *bool) bool { return condition != nil && *condition }
			if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready && !is(endpoint.Conditions.Terminating) {
				unready++
			}
		}
	}
	return unready, nil
}

// claimReady says whether a claim is bound, or pending where its class binds it
// when a pod first uses it.
func claimReady(ctx context.Context, c dynamic.Interface) Readiness {
	return func(obj *unstructured.Unstructured) (bool, string, error) {
		if bindsOnFirstUse(ctx, c, obj) {
			return phaseReady("Pending", "Bound")(obj)
		}
		return phaseReady("Bound")(obj)
	}
}

// bindsOnFirstUse says whether a claim stays unbound until a pod uses it:
// waiting for it would wait for what comes later.
func bindsOnFirstUse(ctx context.Context, c dynamic.Interface, claim *unstructured.Unstructured) bool {
	class, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
	if class == "" {
		return false
	}
	classes := c.Resource(schema.GroupVersionResource{
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
