package kubernetes

import (
	"context"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Read reads an object as it is in the cluster. Its inputs are the last ones,
// with what drifted replaced; of an object that is imported, all that a program
// could ask for. An object that is not ready is returned with an error, which
// makes the next update wait for it.
func (p *Provider) Read(ctx context.Context, req plugin.ReadRequest) (plugin.ReadResponse, error) {
	c, _ := p.state()
	if c == nil {
		return plugin.ReadResponse{ReadResult: plugin.ReadResult{
			ID: req.ID, Inputs: req.Inputs, Outputs: req.State,
		}}, nil
	}
	obj, err := located(req.URN, req.ID, req.Inputs, req.State)
	if err != nil {
		return plugin.ReadResponse{}, err
	}
	r, err := c.bind(obj)
	if meta.IsNoMatchError(err) {
		return plugin.ReadResponse{}, nil
	}
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("reading %s: %w", describe(obj), c.explain(err))
	}
	live, err := r.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return plugin.ReadResponse{}, nil
	}
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("reading %s: %w", describe(obj), c.explain(err))
	}

	if len(req.Inputs) == 0 {
		inputs := importedInputs(live)
		return plugin.ReadResponse{ReadResult: plugin.ReadResult{
			ID: idOf(live), Inputs: inputs, Outputs: outputsOf(live, nil),
		}}, nil
	}
	inputs, err := liveInputs(ctx, r, req.Inputs, live)
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("reading %s: %w", describe(obj), c.explain(err))
	}
	outputs := outputsOf(live, inputs)
	return plugin.ReadResponse{ReadResult: plugin.ReadResult{
		ID: idOf(live), Inputs: inputs, Outputs: outputs,
	}}, c.unready(ctx, live, outputs, inputs)
}

// liveInputs returns inputs with what drifted in the cluster replaced.
func liveInputs(
	ctx context.Context, r dynamic.ResourceInterface, inputs resource.PropertyMap, live *unstructured.Unstructured,
) (resource.PropertyMap, error) {
	obj, err := objectOf(inputs)
	if err != nil {
		return nil, err
	}
	obj.SetNamespace(live.GetNamespace())
	var want map[string]any
	now, after, err := dryRun(ctx, r, obj, nil)
	switch {
	case err == nil && same(now, after):
		return inputs, nil
	case err == nil:
		live, want = now, contentOf(after)
	case malformed(err):
		// The object differs where it cannot be changed back, or its schema has
		// changed: there is nothing to compare with.
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		// Applying is not possible now, as in a namespace that is being deleted.
		return inputs, nil
	default:
		return nil, err
	}
	plain, err := plainMap(reveal(inputs))
	if err != nil {
		return nil, err
	}
	have := contentOf(live)
	if stringData, ok := plain["stringData"].(map[string]any); ok && isSecret(live) {
		decodeStringData(have, stringData)
		if want != nil {
			decodeStringData(want, stringData)
		}
	}
	var wanted any
	if want != nil {
		wanted = want
	}
	projected, _ := project(plain, have, wanted).(map[string]any)
	drifted := resource.NewPropertyMapFromMap(projected)
	if isSecret(live) {
		markSecret(drifted)
	}
	conceal(drifted, inputs)
	return drifted, nil
}

// importedInputs are the inputs that would make a live object.
func importedInputs(live *unstructured.Unstructured) resource.PropertyMap {
	content := contentOf(live)
	if metadata, ok := content["metadata"].(map[string]any); ok {
		delete(metadata, "ownerReferences")
		delete(metadata, "finalizers")
	}
	inputs := resource.NewPropertyMapFromMap(content)
	if isSecret(live) {
		markSecret(inputs)
	}
	return inputs
}

// unready is the error of an object that is not ready, nil if it is.
func (c *client) unready(
	ctx context.Context, live *unstructured.Unstructured, outputs, inputs resource.PropertyMap,
) error {
	ready, err := c.readinessOf(ctx, live)
	if err != nil {
		return fmt.Errorf("%s: %w", describe(live), err)
	}
	done, waitingFor, err := ready(live)
	switch {
	case err != nil:
		return partial(idOf(live), outputs, inputs, fmt.Errorf("%s is %w: %w", describe(live), errNotReady, err))
	case !done:
		return partial(idOf(live), outputs, inputs, fmt.Errorf("%s is %w: %s", describe(live), errNotReady, waitingFor))
	}
	return nil
}
