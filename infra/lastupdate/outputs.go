// Package lastupdate reads what the last update of a stack has left for the next one.
package lastupdate

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/infra/stackid"
)

// Outputs are those of the last successful update of this stack. A program cannot see
// the state of its stack, and [pulumi.StackReference] would show as a step of every
// preview; the function below it does not.
func Outputs(ctx *pulumi.Context) (map[string]any, error) {
	var stack struct {
		Outputs map[string]any `pulumi:"outputs"`
	}
	// Some outputs are secret, which Invoke would refuse.
	_, err := ctx.InvokePackageRaw("pulumi:pulumi:readStackOutputs", map[string]any{"name": stackid.Of(ctx).String()}, &stack, "")
	if err != nil {
		return nil, fmt.Errorf("outputs of the last update of %s: %w", stackid.Of(ctx).String(), err)
	}
	return stack.Outputs, nil
}

// resources are the outputs of each resource in the state of this stack, by its URN.
func resources(ctx *pulumi.Context) (map[resource.URN]map[string]any, error) {
	var stack struct {
		Outputs map[string]any `pulumi:"outputs"`
	}
	_, err := ctx.InvokePackageRaw("pulumi:pulumi:readStackResourceOutputs", map[string]any{"stackName": stackid.Of(ctx).String()}, &stack, "")
	if err != nil {
		return nil, fmt.Errorf("resources of %s: %w", stackid.Of(ctx).String(), err)
	}
	resources := map[resource.URN]map[string]any{}
	for urn, found := range stack.Outputs {
		of, _ := found.(map[string]any)
		outputs, _ := of["outputs"].(map[string]any)
		resources[resource.URN(urn)] = outputs
	}
	return resources, nil
}
