package kubeprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"persia/sandbox/kubeprovider/cluster"
	"persia/sandbox/kubeprovider/object"
)

const annotationPatchForce = "pulumi.com/patchForce"

// Create makes an object and waits until it is ready. An object of this name that
// is there already is an error, since the program does not own it, unless the
// option upsertExistingObjects says to take it over.
func (p *Provider) Create(ctx context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	if req.Preview {
		properties, err := p.previewCreate(ctx, req)
		return plugin.CreateResponse{Properties: properties}, err
	}
	c, err := p.configured(req.URN)
	if err != nil {
		return plugin.CreateResponse{}, err
	}
	obj, err := object.Of(req.Properties)
	if err != nil {
		return plugin.CreateResponse{}, fmt.Errorf("%s: %w", req.URN, err)
	}
	ctx, done := p.operation(ctx, req.Timeout, obj)
	defer done()
	if err := c.AwaitKind(ctx, obj.GroupVersionKind()); err != nil {
		return plugin.CreateResponse{}, fmt.Errorf("creating %s: %w", object.Describe(obj), c.Explain(err))
	}
	r, err := c.Bind(obj)
	if err != nil {
		return plugin.CreateResponse{}, fmt.Errorf("creating %s: %w", object.Describe(obj), c.Explain(err))
	}
	live, err := p.create(cluster.ForResource(ctx, req.URN), r, obj, false)
	if err != nil {
		return plugin.CreateResponse{}, fmt.Errorf("creating %s: %w", object.Describe(obj), c.Explain(err))
	}
	live, err = p.awaitReady(ctx, c, r, req.URN, live)
	outputs := object.Outputs(live, req.Properties)
	if err != nil {
		err = partial(object.ID(live), outputs, req.Properties, err)
	}
	return plugin.CreateResponse{ID: object.ID(live), Properties: outputs}, err
}

// Update applies an object's new inputs and waits until it is ready.
func (p *Provider) Update(ctx context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	if req.Preview {
		properties, err := p.previewUpdate(ctx, req)
		return plugin.UpdateResponse{Properties: properties}, err
	}
	c, err := p.configured(req.URN)
	if err != nil {
		return plugin.UpdateResponse{}, err
	}
	obj, err := object.Of(req.NewInputs)
	if err != nil {
		return plugin.UpdateResponse{}, fmt.Errorf("%s: %w", req.URN, err)
	}
	ctx, done := p.operation(ctx, req.Timeout, obj)
	defer done()
	r, err := c.Bind(obj)
	if err != nil {
		return plugin.UpdateResponse{}, fmt.Errorf("updating %s: %w", object.Describe(obj), c.Explain(err))
	}
	live, err := p.update(cluster.ForResource(ctx, req.URN), r, obj, req.IgnoreChanges, false)
	if err != nil {
		return plugin.UpdateResponse{}, fmt.Errorf("updating %s: %w", object.Describe(obj), c.Explain(err))
	}
	live, err = p.awaitReady(ctx, c, r, req.URN, live)
	outputs := object.Outputs(live, req.NewInputs)
	if err != nil {
		err = partial(req.ID, outputs, req.NewInputs, err)
	}
	return plugin.UpdateResponse{Properties: outputs}, err
}

// create makes obj. With dryRun nothing is kept.
func (p *Provider) create(
	ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured, dryRun bool,
) (*unstructured.Unstructured, error) {
	if _, config := p.state(); config.upsert {
		return apply(ctx, r, obj, p.forces(obj) || dryRun, dryRun)
	}
	// The API server warns of fields that it does not know, where the official
	// provider says nothing: a misspelt field is worth a line.
	options := metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationWarn}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return r.Create(ctx, obj, options)
}

// update applies obj by server-side apply to the object that is there, and
// removes the fields that an earlier write set and obj does not have. It takes
// over what kubectl wrote; a field of any other writer is a conflict, unless the
// object or the provider's configuration says to force it.
func (p *Provider) update(
	ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured, ignored []string, dryRun bool,
) (*unstructured.Unstructured, error) {
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
	force := p.forces(obj) || dryRun && createdOnly(live)
	if obj, err = keepIgnored(obj, live, ignored); err != nil {
		return nil, err
	}
	return apply(ctx, r, obj, force, dryRun)
}

func apply(
	ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured, force, dryRun bool,
) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	options := metav1.PatchOptions{
		FieldManager: fieldManager, Force: &force, FieldValidation: metav1.FieldValidationWarn,
	}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return r.Patch(ctx, obj.GetName(), types.ApplyPatchType, data, options)
}

func (p *Provider) forces(obj *unstructured.Unstructured) bool {
	if force, ok := obj.GetAnnotations()[annotationPatchForce]; ok {
		return strings.EqualFold(force, "true")
	}
	_, config := p.state()
	return config.patchForce
}

// previewCreate tries a create on the API server, and returns the object as it would be. It ignores
// errors that only an update can decide.
func (p *Provider) previewCreate(ctx context.Context, req plugin.CreateRequest) (resource.PropertyMap, error) {
	c, _ := p.state()
	if c == nil {
		return req.Properties, nil
	}
	obj, err := object.Of(req.Properties)
	if err != nil {
		return req.Properties, nil
	}
	r, err := c.Bind(obj)
	if err != nil {
		return req.Properties, nil
	}
	after, err := p.create(ctx, r, obj, true)
	switch {
	case err == nil:
		delete(after.Object, "status")
		return object.Outputs(after, req.Properties), nil
	case apierrors.IsAlreadyExists(err), // Pulumi may delete it first, and create it again
		apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return req.Properties, nil
	default:
		return nil, fmt.Errorf("%s: the API server would refuse it: %w", object.Describe(obj), c.Explain(err))
	}
}

// previewUpdate tries an update on the API server, and returns the object as it
// would be.
func (p *Provider) previewUpdate(ctx context.Context, req plugin.UpdateRequest) (resource.PropertyMap, error) {
	c, _ := p.state()
	if c == nil {
		return req.NewInputs, nil
	}
	obj, err := object.Of(req.NewInputs)
	if err != nil {
		return req.NewInputs, nil
	}
	r, err := c.Bind(obj)
	if err != nil {
		return req.NewInputs, nil
	}
	after, err := p.update(ctx, r, obj, req.IgnoreChanges, true)
	switch {
	case err == nil:
		return object.Outputs(after, req.NewInputs), nil
	case apierrors.IsForbidden(err):
		return req.NewInputs, nil
	default:
		return nil, fmt.Errorf("%s: the API server would refuse the update: %w", object.Describe(obj), c.Explain(err))
	}
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
