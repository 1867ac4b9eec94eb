package kubeprovider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
)

// fieldManager owns what this provider writes. The official provider makes up
// one name for each resource, with the same prefix.
const fieldManager = "pulumi-kubernetes-sandbox"

// writer writes an object. With dryRun nothing is kept. No object is one that only an update can tell.
type writer func(ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured,
	dryRun bool) (*unstructured.Unstructured, error)

// Create makes an object and waits until it is ready. An object of this name that is there already is an error, since
// the program does not own it, unless the option upsertExistingObjects says to take it over.
func (p *Provider) Create(ctx context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	id, outputs, err := p.write(ctx, req.URN, req.Timeout, req.Preview, req.Properties, p.create)
	return plugin.CreateResponse{ID: id, Properties: outputs}, err
}

// Update applies an object's new inputs and waits until it is ready.
func (p *Provider) Update(ctx context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	update := func(ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured,
		dryRun bool) (*unstructured.Unstructured, error) {
		return p.update(ctx, r, obj, req.IgnoreChanges, dryRun)
	}
	_, outputs, err := p.write(ctx, req.URN, req.Timeout, req.Preview, req.NewInputs, update)
	return plugin.UpdateResponse{Properties: outputs}, err
}

// write writes the object of inputs and waits until it is ready.
func (p *Provider) write(ctx context.Context, urn resource.URN, timeout float64, preview bool,
	inputs resource.PropertyMap, write writer) (resource.ID, resource.PropertyMap, error) {
	if preview {
		outputs, err := p.preview(ctx, inputs, write)
		return "", outputs, err
	}
	c, err := p.configured(urn)
	if err != nil {
		return "", nil, err
	}
	obj, err := objectOf(inputs)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", urn, err)
	}
	ctx, done := p.operation(ctx, timeout, obj)
	defer done()
	var live *unstructured.Unstructured
	r, err := c.awaitKind(ctx, obj)
	if err == nil {
		live, err = write(forResource(ctx, urn), r, obj, false)
	}
	if err != nil {
		return "", nil, fmt.Errorf("writing %s: %w", describe(obj), err)
	}
	live, err = p.awaitReady(ctx, c, urn, live)
	outputs := outputsOf(live, inputs)
	if err != nil {
		err = partial(idOf(live), outputs, inputs, err)
	}
	return idOf(live), outputs, err
}

// preview tries to write the object of inputs on the API server, and returns it as it would be, or the
// inputs where only an update can tell.
func (p *Provider) preview(ctx context.Context, inputs resource.PropertyMap, write writer) (resource.PropertyMap, error) {
	c := p.client.Load()
	if c == nil {
		return inputs, nil
	}
	obj, err := objectOf(inputs)
	if err != nil {
		return inputs, nil
	}
	r, err := c.bind(obj)
	if err != nil {
		return inputs, nil
	}
	after, err := write(ctx, r, obj, true)
	switch {
	case apierrors.IsForbidden(err) || err == nil && after == nil:
		return inputs, nil
	case err != nil:
		return nil, fmt.Errorf("%s: the API server would refuse it: %w", describe(obj), err)
	}
	return outputsOf(after, inputs), nil
}

// create makes obj.
func (p *Provider) create(ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured,
	dryRun bool) (live *unstructured.Unstructured, err error) {
	if p.client.Load().upsert {
		live, err = apply(ctx, r, obj, dryRun)
	} else {
		// The API server warns of fields that it does not know, where the official
		// provider says nothing: a misspelt field is worth a line.
		live, err = r.Create(ctx, obj, metav1.CreateOptions{FieldManager: fieldManager,
			FieldValidation: metav1.FieldValidationWarn, DryRun: dry(dryRun)})
	}
	switch {
	case !dryRun:
	case apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err):
		// Pulumi may delete it first, and create it again. Its namespace may come first, too.
		return nil, nil
	case err == nil:
		delete(live.Object, "status")
	}
	return live, err
}

// update applies obj by server-side apply to the object that is there, and
// removes the fields that an earlier write set and obj does not have.
func (p *Provider) update(ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured,
	ignored []string, dryRun bool) (*unstructured.Unstructured, error) {
	var live *unstructured.Unstructured
	// A controller may write its status meanwhile.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		if live, err = r.Get(ctx, obj.GetName(), metav1.GetOptions{}); err != nil || dryRun {
			return err
		}
		live, err = takeOver(ctx, r, live)
		return err
	})
	if err != nil {
		return nil, err
	}
	if obj, err = keepIgnored(obj, live, ignored); err != nil {
		return nil, err
	}
	return apply(ctx, r, obj, dryRun)
}

// apply takes the fields of obj from other writers.
func apply(ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured,
	dryRun bool) (*unstructured.Unstructured, error) {
	return r.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: fieldManager, Force: true, DryRun: dry(dryRun)})
}

func dry(run bool) []string {
	if run {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// takeOver makes the fields that the provider's own create or kubectl wrote the provider's own, so that
// an update can remove them.
func takeOver(ctx context.Context, r dynamic.ResourceInterface, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	writers := sets.New[string]()
	for _, entry := range live.GetManagedFields() {
		prefix := func(prefix string) bool { return strings.HasPrefix(entry.Manager, prefix) }
		if entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" &&
			slices.ContainsFunc([]string{"kubectl", "before-first-apply", "pulumi-kubernetes", "pulumi-resource-kubernetes"}, prefix) {
			writers.Insert(entry.Manager)
		}
	}
	if len(writers) == 0 {
		return live, nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, writers, fieldManager)
	if err != nil || patch == nil {
		return live, err
	}
	return r.Patch(ctx, live.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{})
}

// partial is the error of an object that is there and not as it should be. The
// engine keeps such a resource in the stack, and the next update takes it up.
func partial(id resource.ID, outputs, inputs resource.PropertyMap, cause error) error {
	failed := &pulumirpc.ErrorResourceInitFailed{Id: string(id), Reasons: []string{cause.Error()}}
	var errs [2]error
	options := plugin.MarshalOptions{Label: "partial", KeepSecrets: true}
	failed.Properties, errs[0] = plugin.MarshalProperties(outputs, options)
	failed.Inputs, errs[1] = plugin.MarshalProperties(inputs, options)
	if err := errors.Join(errs[:]...); err != nil {
		return errors.Join(cause, err)
	}
	return rpcerror.WithDetails(rpcerror.New(codes.Unknown, cause.Error()), failed)
}

// Read reads an object as it is in the cluster. Its inputs are the last ones, with what drifted replaced. An object
// that is not ready is returned with an error, which makes the next update wait for it. Nothing imports an object.
func (p *Provider) Read(ctx context.Context, req plugin.ReadRequest) (plugin.ReadResponse, error) {
	c := p.client.Load()
	if c == nil {
		return plugin.ReadResponse{ReadResult: plugin.ReadResult{ID: req.ID, Inputs: req.Inputs, Outputs: req.State}}, nil
	}
	obj, err := objectOf(req.Inputs)
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("%s: %w", req.URN, err)
	}
	_, live, err := c.find(ctx, obj)
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("reading %s: %w", describe(obj), err)
	}
	if live == nil {
		return plugin.ReadResponse{}, nil
	}
	inputs := liveLike(live, obj)
	markSecret(live, inputs)
	result := plugin.ReadResult{ID: idOf(live), Inputs: inputs, Outputs: outputsOf(live, inputs)}
	if rule := kindRules[live.GroupVersionKind().GroupKind()]; rule.onRead && !skipsAwait(live) {
		waitsFor, err := rule.ready(ctx, c, live)
		if err == nil && waitsFor != "" {
			err = errors.New(waitsFor)
		}
		if err != nil {
			return plugin.ReadResponse{ReadResult: result}, partial(result.ID, result.Outputs, inputs,
				fmt.Errorf("%s is not ready: %w", describe(live), err))
		}
	}
	return plugin.ReadResponse{ReadResult: result}, nil
}

// Delete deletes an object and waits until it is gone. One that is gone already, or whose kind is, is no error.
func (p *Provider) Delete(ctx context.Context, req plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	var none plugin.DeleteResponse
	c, err := p.configured(req.URN)
	if err != nil {
		return none, err
	}
	obj, err := objectOf(req.Inputs)
	if err != nil {
		return none, fmt.Errorf("%s: %w", req.URN, err)
	}
	ctx, done := p.operation(ctx, req.Timeout, obj)
	defer done()
	r, live, err := c.find(ctx, obj)
	if err == nil && live != nil && live.GetDeletionTimestamp() == nil {
		policy, uid := propagation(obj), live.GetUID()
		err = r.Delete(ctx, live.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid}})
	}
	switch {
	case apierrors.IsNotFound(err) || err == nil && live == nil:
		return none, nil
	case err != nil:
		return none, fmt.Errorf("deleting %s: %w", describe(obj), err)
	case skipsAwait(live) && slices.Contains([]string{"apps", "batch"}, live.GroupVersionKind().Group):
		// pulumi.com/skipAwait has this effect for workloads alone (provider/pkg/metadata/overrides.go).
		return none, nil
	}
	return none, p.awaitGone(ctx, r, req.URN, live)
}

// propagation returns how an object is deleted (provider/pkg/metadata/overrides.go). By default, the objects that it
// owns go first, so that the objects that they use can follow.
func propagation(obj *unstructured.Unstructured) metav1.DeletionPropagation {
	if strings.EqualFold(obj.GetAnnotations()["pulumi.com/deletionPropagationPolicy"], "background") {
		return metav1.DeletePropagationBackground
	}
	return metav1.DeletePropagationForeground
}

// AwaitDeletions waits until the objects of a cluster whose deletion has begun are gone. It reports progress if
// it has to wait.
func AwaitDeletions(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured, progress io.Writer) error {
	c, err := newClient(config)
	if err != nil {
		return err
	}
	p := New("", "")
	for _, obj := range objects {
		r, live, err := c.find(ctx, obj)
		if err != nil {
			return fmt.Errorf("reading %s: %w", describe(obj), err)
		}
		if live == nil || live.GetDeletionTimestamp() == nil {
			continue
		}
		fmt.Fprintf(progress, "waiting until %s is deleted\n", describe(live))
		waiting, done := p.operation(ctx, 0, live)
		err = p.awaitGone(waiting, r, "", live)
		done()
		if err != nil {
			return err
		}
	}
	return nil
}
