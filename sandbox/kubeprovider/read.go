package kubeprovider

import (
	"context"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"persia/sandbox/kubeprovider/cluster"
	"persia/sandbox/kubeprovider/object"
	"persia/sandbox/kubeprovider/readiness"
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
	r, err := c.Bind(obj)
	if meta.IsNoMatchError(err) {
		return plugin.ReadResponse{}, nil
	}
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("reading %s: %w", object.Describe(obj), c.Explain(err))
	}
	live, err := r.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return plugin.ReadResponse{}, nil
	}
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("reading %s: %w", object.Describe(obj), c.Explain(err))
	}

	if len(req.Inputs) == 0 {
		inputs := importedInputs(live)
		return plugin.ReadResponse{ReadResult: plugin.ReadResult{
			ID: object.ID(live), Inputs: inputs, Outputs: object.Outputs(live, nil),
		}}, nil
	}
	inputs, err := liveInputs(req.Inputs, live)
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("reading %s: %w", object.Describe(obj), err)
	}
	outputs := object.Outputs(live, inputs)
	return plugin.ReadResponse{ReadResult: plugin.ReadResult{
		ID: object.ID(live), Inputs: inputs, Outputs: outputs,
	}}, unready(ctx, c, live, outputs, inputs)
}

// liveInputs returns the fields of inputs with the values that they have in the
// cluster.
func liveInputs(inputs resource.PropertyMap, live *unstructured.Unstructured) (resource.PropertyMap, error) {
	drifted, err := object.LiveLike(live, inputs)
	if err != nil {
		return nil, err
	}
	if object.IsSecret(live) {
		object.MarkSecret(drifted)
	}
	object.Conceal(drifted, inputs)
	return drifted, nil
}

// importedInputs returns the inputs that would make a live object.
func importedInputs(live *unstructured.Unstructured) resource.PropertyMap {
	content := live.DeepCopy().Object
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, field := range append(object.Bookkeeping, "ownerReferences", "finalizers") {
			delete(metadata, field)
		}
	}
	inputs := resource.NewPropertyMapFromMap(content)
	if object.IsSecret(live) {
		object.MarkSecret(inputs)
	}
	return inputs
}

// unready is the error of an object that is not ready, nil if it is.
func unready(
	ctx context.Context, c *cluster.Client, live *unstructured.Unstructured, outputs, inputs resource.PropertyMap,
) error {
	isReady := readiness.OnRead(ctx, c.Dynamic, live)
	if isReady == nil {
		return nil
	}
	done, waitingFor, err := isReady(live)
	switch {
	case err != nil:
		return partial(object.ID(live), outputs, inputs, fmt.Errorf("%s is %w: %w", object.Describe(live), errNotReady, err))
	case !done:
		return partial(object.ID(live), outputs, inputs, fmt.Errorf("%s is %w: %s", object.Describe(live), errNotReady, waitingFor))
	}
	return nil
}
