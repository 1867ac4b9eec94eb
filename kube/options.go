package kube

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Child is the options of a component's children: nothing of what the component
// itself was given, and every one of them after needs. Pulumi lets a component
// wait, but not its children with it.
func Child(component pulumi.Resource, needs []pulumi.CustomResource) pulumi.ResourceOption {
	return pulumi.Composite(pulumi.Parent(component), After(needs))
}

// After has a resource come after needs, and go before them. No component is among
// them: Pulumi has whoever depends on a component come after its children, but only
// after those that it has got to know in the background by then.
func After(needs []pulumi.CustomResource) pulumi.ResourceOption {
	resources := make([]pulumi.Resource, len(needs))
	for i, need := range needs {
		resources[i] = need
	}
	return pulumi.DependsOn(resources)
}

// workloadTimeout is how long the pods of a workload may take to become ready. Nodes
// that a pool starts from zero, drivers and first pulls of images of several GB
// come before that, far beyond the Kubernetes provider's 10 minutes.
const workloadTimeout = "60m"

// WorkloadTimeouts lets a workload's pods take as long as that.
func WorkloadTimeouts() pulumi.ResourceOption {
	return pulumi.Timeouts(&pulumi.CustomTimeouts{Create: workloadTimeout, Update: workloadTimeout, Delete: workloadTimeout})
}
