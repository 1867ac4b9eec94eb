package kubeprovider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"persia/sandbox/kubeprovider/cluster"
	"persia/sandbox/kubeprovider/object"
	"persia/sandbox/kubeprovider/readiness"
)

const annotationPropagation = "pulumi.com/deletionPropagationPolicy"

// Delete deletes an object and waits until it is gone. One that is gone
// already, or whose kind is, is no error.
func (p *Provider) Delete(ctx context.Context, req plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	c, err := p.configured(req.URN)
	if err != nil {
		return plugin.DeleteResponse{}, err
	}
	obj, err := located(req.URN, req.ID, req.Inputs, req.Outputs)
	if err != nil {
		return plugin.DeleteResponse{}, err
	}
	ctx, done := p.operation(ctx, req.Timeout, obj)
	defer done()

	r, live, err := find(ctx, c, obj)
	if err == nil && live != nil && live.GetDeletionTimestamp() == nil {
		policy := propagation(obj)
		uid := live.GetUID()
		err = r.Delete(ctx, obj.GetName(), metav1.DeleteOptions{
			PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid},
		})
	}
	if live == nil && err == nil || apierrors.IsNotFound(err) {
		return plugin.DeleteResponse{}, nil
	}
	if err != nil {
		return plugin.DeleteResponse{}, fmt.Errorf("deleting %s: %w", object.Describe(obj), c.Explain(err))
	}
	if skipsDelete(obj) {
		return plugin.DeleteResponse{}, nil
	}
	return plugin.DeleteResponse{}, p.awaitGone(ctx, c, r, req.URN, live)
}

// find returns an object as it is in the cluster, or nil if it or its kind is gone.
func find(ctx context.Context, c *cluster.Client, obj *unstructured.Unstructured) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
	r, err := c.Bind(obj)
	if meta.IsNoMatchError(err) {
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

// AwaitDeletion waits until an object whose deletion has begun is gone. It reports progress if it
// has to wait.
func AwaitDeletion(ctx context.Context, p *Provider, req plugin.DeleteRequest, progress io.Writer) error {
	c, err := p.configured(req.URN)
	if err != nil {
		return err
	}
	obj, err := located(req.URN, req.ID, req.Inputs, req.Outputs)
	if err != nil {
		return err
	}
	ctx, done := p.operation(ctx, req.Timeout, obj)
	defer done()

	r, live, err := find(ctx, c, obj)
	if err != nil {
		return fmt.Errorf("reading %s: %w", object.Describe(obj), c.Explain(err))
	}
	if live == nil || live.GetDeletionTimestamp() == nil {
		return nil
	}
	fmt.Fprintf(progress, "waiting until %s is deleted\n", object.Describe(obj))
	return p.awaitGone(ctx, c, r, req.URN, live)
}

// propagation returns how the API server deletes the objects that obj owns: first, so that the
// objects that they use can follow, unless the annotation says otherwise.
func propagation(obj *unstructured.Unstructured) metav1.DeletionPropagation {
	switch strings.ToLower(obj.GetAnnotations()[annotationPropagation]) {
	case "background":
		return metav1.DeletePropagationBackground
	case "orphan":
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationForeground
}

// skipsDelete reports whether the provider does not wait for the deletion of obj. The annotation
// pulumi.com/skipAwait has this effect for these kinds alone (provider/pkg/metadata/overrides.go).
func skipsDelete(obj *unstructured.Unstructured) bool {
	if !readiness.SkipsAwait(obj) {
		return false
	}
	switch obj.GroupVersionKind().GroupKind().String() {
	case "Namespace", "Pod", "ReplicationController",
		"DaemonSet.apps", "Deployment.apps", "StatefulSet.apps", "Job.batch":
		return true
	}
	return false
}

// awaitGone waits until obj is gone, or another object has its name.
func (p *Provider) awaitGone(
	ctx context.Context, c *cluster.Client, r dynamic.ResourceInterface, urn resource.URN, obj *unstructured.Unstructured,
) error {
	message := remaining(obj)
	err := cluster.Observe(ctx, r, obj.GetName(), cluster.WatchRenewal, func(live *unstructured.Unstructured) (bool, error) {
		if live == nil || live.GetUID() != obj.GetUID() {
			return true, nil
		}
		if waitingFor := cluster.HeldBy(remaining(live), c.Holders(ctx, live)); waitingFor != message {
			message = waitingFor
			p.log.Status(ctx, urn, message)
		}
		return false, nil
	})
	p.log.Status(ctx, urn, "")
	if err != nil {
		return fmt.Errorf("%s is not gone: %w; %s", object.Describe(obj), err, message)
	}
	return nil
}

// remaining explains why an object is not deleted yet.
func remaining(obj *unstructured.Unstructured) string {
	var reasons []string
	if obj.GetKind() == "Namespace" {
		conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		for _, c := range conditions {
			condition, _ := c.(map[string]any)
			message, _ := condition["message"].(string)
			if condition["status"] == "True" && message != "" {
				reasons = append(reasons, message)
			}
		}
	}
	finalizers := obj.GetFinalizers()
	if spec, _, _ := unstructured.NestedStringSlice(obj.Object, "spec", "finalizers"); obj.GetKind() == "Namespace" {
		finalizers = append(finalizers, spec...)
	}
	if len(finalizers) > 0 {
		reasons = append(reasons, "finalizers: "+strings.Join(finalizers, ", "))
	}
	if len(reasons) == 0 {
		return "waiting for it to be deleted"
	}
	return "waiting for " + strings.Join(reasons, "; ")
}

// located returns the kind, name and annotations of a resource's object. The inputs hold what was
// applied last; a resource that was imported or only read has them in its outputs.
func located(
	urn resource.URN, id resource.ID, inputs, outputs resource.PropertyMap,
) (*unstructured.Unstructured, error) {
	if id == "" {
		return nil, errors.New(string(urn) + " has no ID")
	}
	source := object.Reveal(inputs)
	if !source["kind"].IsString() || !source["apiVersion"].IsString() {
		source = object.Reveal(outputs)
	}
	apiVersion, kind := gvkOfToken(urn.Type())
	if source["kind"].IsString() && source["apiVersion"].IsString() {
		apiVersion, kind = source["apiVersion"].StringValue(), source["kind"].StringValue()
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	namespace, name, namespaced := strings.Cut(string(id), "/")
	if !namespaced {
		namespace, name = "", string(id)
	}
	obj.SetName(name)
	if namespace != "" {
		obj.SetNamespace(namespace)
	}
	if annotations := annotationsOf(source); len(annotations) > 0 {
		obj.SetAnnotations(annotations)
	}
	return obj, nil
}
