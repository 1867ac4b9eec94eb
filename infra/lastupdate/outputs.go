// Package lastupdate reads what the last update of a stack has left for the next one.
package lastupdate

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/kube"
)

// Outputs are those of the last successful update of this stack. A program cannot see
// the state of its stack, and [pulumi.StackReference] would show as a step of every
// preview; the function below it does not.
func Outputs(ctx *pulumi.Context) (map[string]any, error) {
	var stack struct {
		Outputs map[string]any `pulumi:"outputs"`
	}
	name := kube.StackName(ctx)
	// Some outputs are secret, which Invoke would refuse.
	_, err := ctx.InvokePackageRaw("pulumi:pulumi:readStackOutputs", map[string]any{"name": name}, &stack, "")
	if err != nil {
		return nil, fmt.Errorf("outputs of the last update of %s: %w", name, err)
	}
	return stack.Outputs, nil
}
