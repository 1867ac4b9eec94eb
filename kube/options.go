package kube

import (
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	policyv1 "k8s.io/api/policy/v1"
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

// EvictUnhealthy lets a pod that is not ready be evicted whatever its disruption budget
// says. Otherwise one that crashes for ever would keep its node from being drained.
func EvictUnhealthy() *policyv1.UnhealthyPodEvictionPolicyType {
	always := policyv1.AlwaysAllow
	return &always
}

// workloadTimeout is how long the pods of a workload may take to become ready. Nodes
// that a pool starts from zero, drivers and first pulls of images of several GB
// come before that, far beyond the Kubernetes provider's 10 minutes.
const workloadTimeout = time.Hour

// rolloutTime is how long one replica of a rolling update may take until the next one
// goes: its grace period, a new pod, the pull of a layer or two, and readiness.
const rolloutTime = 2 * time.Minute

// WorkloadTimeouts lets a workload's pods take as long as that.
func WorkloadTimeouts() pulumi.ResourceOption { return RolloutTimeouts(0) }

// RolloutTimeouts are WorkloadTimeouts for replicas that start at once, and that an
// update replaces one after the other, as a StatefulSet does: its maxUnavailable is
// behind a feature gate that Kubernetes 1.34 leaves off.
func RolloutTimeouts(replicas int) pulumi.ResourceOption {
	return pulumi.Timeouts(rolloutTimeouts(replicas))
}

func rolloutTimeouts(replicas int) *pulumi.CustomTimeouts {
	minutes := func(d time.Duration) string { return fmt.Sprintf("%dm", int(d.Minutes())) }
	at, one := minutes(workloadTimeout), minutes(workloadTimeout+time.Duration(replicas)*rolloutTime)
	return &pulumi.CustomTimeouts{Create: at, Update: one, Delete: at}
}
