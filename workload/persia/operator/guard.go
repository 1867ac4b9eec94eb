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

// A guard is a disruption budget. It keeps Kubernetes from evicting the pods of a job, because
// nothing recreates an evicted pod. It also counts them, and is ready once there are none: the
// operator creates the pods of a job once and does not retry, so it leaves a job without pods if
// one pod of the job's predecessor still ends.
//
// The operator ignores changes of a job. So every change replaces the guard, and with it the
// PersiaJob: Pulumi deletes the old job first, and creates the new one when the last pod is gone.
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

// recreatedWith makes Pulumi create a PersiaJob after its guard, and recreate it with each new one.
func recreatedWith(guard pulumi.CustomResource) pulumi.ResourceOption {
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
