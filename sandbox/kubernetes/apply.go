package kubernetes

import (
	"context"
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
	"k8s.io/client-go/dynamic"
)

// Create applies an object and waits until it is ready. An object that is
// already there, as after a create that was interrupted, is adopted.
func (p *Provider) Create(ctx context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	if req.Preview {
		if err := p.previewCreate(ctx, req); err != nil {
			return plugin.CreateResponse{}, err
		}
		return plugin.CreateResponse{Properties: req.Properties}, nil
	}
	live, err := p.applyAndAwait(ctx, req.URN, req.Properties, nil, req.Timeout)
	if live == nil {
		return plugin.CreateResponse{}, err
	}
	outputs := outputsOf(live, req.Properties)
	if err != nil {
		err = partial(idOf(live), outputs, req.Properties, err)
	}
	return plugin.CreateResponse{ID: idOf(live), Properties: outputs}, err
}

// Update applies an object's new inputs and waits until it is ready.
func (p *Provider) Update(ctx context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	if req.Preview {
		return plugin.UpdateResponse{Properties: p.previewUpdate(ctx, req)}, nil
	}
	live, err := p.applyAndAwait(ctx, req.URN, req.NewInputs, req.IgnoreChanges, req.Timeout)
	if live == nil {
		return plugin.UpdateResponse{}, err
	}
	outputs := outputsOf(live, req.NewInputs)
	if err != nil {
		err = partial(req.ID, outputs, req.NewInputs, err)
	}
	return plugin.UpdateResponse{Properties: outputs}, err
}

// applyAndAwait applies inputs and waits until the object is ready. With an
// error it returns the object as it is, nil if nothing was applied.
func (p *Provider) applyAndAwait(
	ctx context.Context, urn resource.URN, inputs resource.PropertyMap, ignored []string, seconds float64,
) (*unstructured.Unstructured, error) {
	c, err := p.configured(urn)
	if err != nil {
		return nil, err
	}
	obj, err := objectOf(inputs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", urn, err)
	}
	ctx, done := p.operation(ctx, seconds, obj)
	defer done()

	if err := c.awaitKind(ctx, obj.GroupVersionKind()); err != nil {
		return nil, fmt.Errorf("applying %s: %w", describe(obj), c.explain(err))
	}
	r, err := c.bind(obj)
	if err != nil {
		return nil, fmt.Errorf("applying %s: %w", describe(obj), c.explain(err))
	}
	if len(ignored) > 0 {
		live, err := r.Get(ctx, obj.GetName(), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading %s: %w", describe(obj), c.explain(err))
		}
		if err == nil {
			if obj, err = keepIgnored(obj, live, ignored); err != nil {
				return nil, fmt.Errorf("%s: %w", urn, err)
			}
		}
	}
	live, err := apply(forResource(ctx, urn), r, obj, false)
	if err != nil {
		return nil, fmt.Errorf("applying %s: %w", describe(obj), c.explain(err))
	}
	if live.GetDeletionTimestamp() != nil {
		// What an interrupted destroy left behind takes the apply and then goes.
		if err := p.awaitGone(ctx, c, r, urn, live); err != nil {
			return nil, err
		}
		if live, err = apply(forResource(ctx, urn), r, obj, false); err != nil {
			return nil, fmt.Errorf("applying %s: %w", describe(obj), c.explain(err))
		}
	}
	return p.awaitReady(ctx, c, r, urn, live)
}

// keepIgnored returns obj with the live value of every property that changes
// are ignored in.
func keepIgnored(
	obj, live *unstructured.Unstructured, ignored []string,
) (*unstructured.Unstructured, error) {
	kept, now := resource.NewPropertyMapFromMap(obj.Object), resource.NewPropertyMapFromMap(live.Object)
	for _, text := range ignored {
		path, err := resource.ParsePropertyPath(text)
		if err != nil {
			return nil, fmt.Errorf("ignoreChanges %q: %w", text, err)
		}
		path.Reset(now, kept)
	}
	content, err := plainMap(kept)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// previewCreate tries a create on the API server, so that an object that it
// refuses is found before the update. What only the update can tell passes.
func (p *Provider) previewCreate(ctx context.Context, req plugin.CreateRequest) error {
	c, _ := p.state()
	if c == nil {
		return nil
	}
	obj, err := objectOf(req.Properties)
	if err != nil {
		return nil
	}
	r, err := c.bind(obj)
	if err != nil {
		return nil
	}
	_, err = apply(ctx, r, obj, true)
	if apierrors.IsInvalid(err) {
		// The object may be there, to be deleted and made anew.
		err = creatable(ctx, r, obj)
	}
	if malformed(err) {
		return fmt.Errorf("%s: the API server would refuse it: %w", describe(obj), err)
	}
	return nil
}

// malformed says whether the API server refuses an object for what is in it,
// whatever else there is in the cluster.
func malformed(err error) bool {
	// Fields that its schema does not have are reported without a reason.
	const noField = "failed to create typed patch object"
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		err != nil && strings.Contains(err.Error(), noField)
}

// previewUpdate is the object as the API server would have it after the
// update, or the new inputs where it cannot tell.
func (p *Provider) previewUpdate(ctx context.Context, req plugin.UpdateRequest) resource.PropertyMap {
	c, _ := p.state()
	if c == nil {
		return req.NewInputs
	}
	obj, err := objectOf(req.NewInputs)
	if err != nil {
		return req.NewInputs
	}
	r, err := c.bind(obj)
	if err != nil {
		return req.NewInputs
	}
	after, err := apply(ctx, r, obj, true)
	if err != nil {
		return req.NewInputs
	}
	return outputsOf(after, req.NewInputs)
}

// creatable returns the API server's objection to obj as a new object, nil if
// it has none. An object is validated before its name is looked up, so one that
// exists already is as good as one that does not.
func creatable(ctx context.Context, r dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
	_, err := r.Create(ctx, obj, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager, FieldValidation: metav1.FieldValidationIgnore,
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
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
