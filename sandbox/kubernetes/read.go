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
	inputs, err := liveInputs(req.Inputs, live)
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("reading %s: %w", describe(obj), err)
	}
	outputs := outputsOf(live, inputs)
	return plugin.ReadResponse{ReadResult: plugin.ReadResult{
		ID: idOf(live), Inputs: inputs, Outputs: outputs,
	}}, c.unready(ctx, live, outputs, inputs)
}

// liveInputs returns the fields of inputs with the values that they have in the
// cluster.
func liveInputs(inputs resource.PropertyMap, live *unstructured.Unstructured) (resource.PropertyMap, error) {
	drifted, err := liveLike(live, inputs)
	if err != nil {
		return nil, err
	}
	if isSecret(live) {
		markSecret(drifted)
	}
	conceal(drifted, inputs)
	return drifted, nil
}

// importedInputs are the inputs that would make a live object.
func importedInputs(live *unstructured.Unstructured) resource.PropertyMap {
	content := live.DeepCopy().Object
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, field := range append(bookkeeping, "ownerReferences", "finalizers") {
			delete(metadata, field)
		}
	}
	inputs := resource.NewPropertyMapFromMap(content)
	if isSecret(live) {
		markSecret(inputs)
	}
	return inputs
}

// unready is the error of an object that is not ready, nil if it is. What
// pulumi.com/waitFor says is not asked: the official provider reads by its own
// rules (Read in provider/pkg/await/await.go).
func (c *client) unready(
	ctx context.Context, live *unstructured.Unstructured, outputs, inputs resource.PropertyMap,
) error {
	rule := kindRules[live.GroupVersionKind().GroupKind()]
	if !rule.onRead || skipsAwait(live) {
		return nil
	}
	done, waitingFor, err := rule.ready(ctx, c)(live)
	switch {
	case err != nil:
		return partial(idOf(live), outputs, inputs, fmt.Errorf("%s is %w: %w", describe(live), errNotReady, err))
	case !done:
		return partial(idOf(live), outputs, inputs, fmt.Errorf("%s is %w: %s", describe(live), errNotReady, waitingFor))
	}
	return nil
}
