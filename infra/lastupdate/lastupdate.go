// Package lastupdate reads the state after the last update of a stack.
//
// A program cannot see the state of its own stack, and a [pulumi.StackReference] would appear as a
// step of every preview. The package therefore calls two functions of the engine that the SDK does
// not document: readStackOutputs, which the SDK calls for a StackReference, and
// readStackResourceOutputs.
package lastupdate

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/infra/stackid"
)

// State is the state of a stack before an update. It is empty until an update has succeeded.
type State struct {
	// Outputs are the outputs of the last successful update.
	Outputs map[string]any
	// Resources are the outputs of each resource. Unlike Outputs, they are also up to date
	// after a failed update.
	Resources map[resource.URN]map[string]any
}

// Read reads the state of this stack.
func Read(ctx *pulumi.Context) (State, error) {
	outputs, err := call(ctx, "readStackOutputs", "name")
	if err != nil || len(outputs) == 0 {
		// Without outputs the stack may have no state, and the engine refuses to read its
		// resources.
		return State{}, err
	}
	found, err := call(ctx, "readStackResourceOutputs", "stackName")
	if err != nil {
		return State{}, err
	}
	state := State{outputs, map[resource.URN]map[string]any{}}
	for urn, of := range found {
		properties, _ := of.(map[string]any)
		outputs, _ := properties["outputs"].(map[string]any)
		state.Resources[resource.URN(urn)] = outputs
	}
	return state, nil
}

// call calls a function of the engine that takes the name of a stack, and returns the
// function's outputs. Some of them are secret, which Invoke would refuse.
func call(ctx *pulumi.Context, function, argument string) (map[string]any, error) {
	name := stackid.Of(ctx).String()
	var answer struct {
		Outputs map[string]any `pulumi:"outputs"`
	}
	_, err := ctx.InvokePackageRaw("pulumi:pulumi:"+function, map[string]any{argument: name}, &answer, "")
	if err != nil {
		return nil, fmt.Errorf("%s of stack %s: %w", function, name, err)
	}
	return answer.Outputs, nil
}
