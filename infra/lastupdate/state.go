package lastupdate

import (
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// State is what a stack has before an update. It is empty until an update has succeeded.
type State struct {
	Outputs map[string]any
	// Resources are the outputs of each resource. Unlike Outputs, they are up to date
	// after an update that failed, too.
	Resources map[resource.URN]map[string]any
}

// Read reads the state of this stack. Without [Outputs] there may be none yet, of which
// Pulumi must not be asked.
func Read(ctx *pulumi.Context) (State, error) {
	outputs, err := Outputs(ctx)
	if err != nil || len(outputs) == 0 {
		return State{}, err
	}
	found, err := resources(ctx)
	return State{outputs, found}, err
}
