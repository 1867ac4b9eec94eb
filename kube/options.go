package kube

import (
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// After makes a resource depend on needs: it is created after them and deleted before
// them. needs contains no components: a resource that depends on a component waits only
// for the children that Pulumi has registered by then, in the background.
func After(needs []pulumi.CustomResource) pulumi.ResourceOption {
	resources := make([]pulumi.Resource, len(needs))
	for i, need := range needs {
		resources[i] = need
	}
	return pulumi.DependsOn(resources)
}

// workloadTimeout limits how long the pods of a workload may take to become ready. Before that, a pool may have to
// start nodes, install drivers, and pull images of several GB, which takes far longer than the Kubernetes provider's
// default of 10 minutes.
const workloadTimeout = time.Hour

// RolloutTime is how long one replica may take in a rolling update: its grace period, a
// new pod, the pull of a layer or two, and readiness.
const RolloutTime = 2 * time.Minute

// WorkloadTimeouts sets the timeouts of a workload to workloadTimeout.
func WorkloadTimeouts() pulumi.ResourceOption { return RolloutTimeouts(0) }

// RolloutTimeouts is like [WorkloadTimeouts], for replicas that start in parallel but that an update replaces one at a
// time, as a StatefulSet does: before Kubernetes 1.35, the feature gate of its maxUnavailable is off.
func RolloutTimeouts(replicas int) pulumi.ResourceOption {
	minutes := func(d time.Duration) string { return fmt.Sprintf("%dm", int(d.Minutes())) }
	at, one := minutes(workloadTimeout), minutes(workloadTimeout+time.Duration(replicas)*RolloutTime)
	return pulumi.Timeouts(&pulumi.CustomTimeouts{Create: at, Update: one, Delete: at})
}
