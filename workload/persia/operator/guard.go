package operator

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/kube"
	"persia/workload/persia"
	"persia/workload/persia/operator/persiav1"
)

// A guard is a disruption budget. It keeps the pods of a job from being evicted,
// since nothing makes an evicted one again. And it counts them: a guard is ready
// once there are none, as the operator, which creates each pod of a job at once and
// tries no second time, leaves a job without pods as soon as one of its
// predecessor's is still ending.
//
// The operator looks at no change of a job. So every change makes the guard anew,
// and the PersiaJob with it: first the old job goes, and when its last pod is gone
// the new one comes.
func newGuard(ctx *pulumi.Context, name string, args JobArgs, spec persiav1.PersiaJobSpec, child pulumi.ResourceOption) (pulumi.CustomResource, error) {
	text, err := textOf(spec)
	if err != nil {
		return nil, fmt.Errorf("PersiaJob %s: %w", args.Job.Name, err)
	}
	return kube.Register(ctx, name, guard(args, spec), child, kube.WorkloadTimeouts(),
		pulumi.DeleteBeforeReplace(true), pulumi.ReplacementTrigger(pulumi.String(text)),
		// As it is while its job runs, it would never be ready.
		pulumi.ReplaceOnChanges([]string{"*"}))
}

// madeAnewWith makes a PersiaJob come after its guard, and again with each new one.
func madeAnewWith(guard pulumi.CustomResource) pulumi.ResourceOption {
	return pulumi.Composite(
		kube.After([]pulumi.CustomResource{guard}),
		pulumi.ReplaceWith([]pulumi.Resource{guard}),
		pulumi.DeleteBeforeReplace(true),
		pulumi.ReplaceOnChanges([]string{"spec"}),
	)
}

func guard(args JobArgs, spec persiav1.PersiaJobSpec) *policyv1.PodDisruptionBudget {
	all := intstr.FromInt32(pods(spec))
	meta := kube.Meta(args.Namespace, args.Job.Name, jobLabels(args.Job))
	// A new budget says that it expects no pods before anybody has counted them, and
	// has its condition after.
	meta.Annotations = map[string]string{
		"pulumi.com/waitFor": `["condition=DisruptionAllowed=False","jsonpath={.status.expectedPods}=0"]`,
	}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &all,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{persia.JobLabel: args.Job.Name}},
		},
	}
}

// pods returns how many pods the operator creates for a job: one for each replica, and one for
// the metrics gateway.
func pods(spec persiav1.PersiaJobSpec) int32 {
	count := spec.NNWorker.Replicas + spec.Dataloader.Replicas + spec.EmbeddingWorker.Replicas + spec.EmbeddingParameterServer.Replicas
	if *spec.EnableMetrics {
		count++
	}
	return count
}
