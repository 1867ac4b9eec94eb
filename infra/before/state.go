// Package before finds out what is there before an update: the state of the stack, which the stack's names
// identify, and what an existing cluster holds.
//
// A program cannot see the state of its own stack, and a [pulumi.StackReference] would appear as a
// step of every preview. The package therefore calls two functions of the engine that the SDK does
// not document: readStackOutputs, which the SDK calls for a StackReference, and
// readStackResourceOutputs.
package before

import (
	"fmt"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
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
	name := Of(ctx).String()
	var answer struct {
		Outputs map[string]any `pulumi:"outputs"`
	}
	for try := 1; ; try++ {
		_, err := ctx.InvokePackageRaw("pulumi:pulumi:"+function, map[string]any{argument: name}, &answer, "")
		switch {
		case err == nil:
			return answer.Outputs, nil
		case try == mostReads || !strings.HasSuffix(err.Error(), "failed to load checkpoint: EOF"):
			return nil, fmt.Errorf("%s of stack %s: %w", function, name, err)
		}
		time.Sleep(betweenReads)
	}
}

// The engine may write the state while the program reads it. A backend of local files does not
// replace the attributes of a file atomically (setAttrs in gocloud.dev/blob/fileblob), so a reader
// may find them empty for a moment.
const (
	mostReads    = 10
	betweenReads = 50 * time.Millisecond
)
