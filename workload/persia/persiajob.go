package persia

import (
	"encoding/json"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/kube"
	"persia/workload/persia/persiav1"
)

// NewOperatedJob registers the PersiaJob of a training, whose pods PERSIA's own operator makes: a job
// has only the features that this program supports. The operator, which alone can let a job go, is among
// args.Needs.
//
// The operator ignores changes of a job. So every change replaces the guard, and with it the PersiaJob:
// Pulumi deletes the old job first, and creates the new one when the last pod is gone.
func NewOperatedJob(r *kube.Registrar, name string, args JobArgs) {
	planned := persiaJob(args)
	text, err := json.Marshal(planned.Spec)
	r.Fail(err)
	objects := r.Component("persia:operator:Job", name)
	needs := addPolicy(objects, name, args, args.Needs)
	guard := objects.Add(name, guard(args, planned.Spec), needs, kube.WorkloadTimeouts(),
		pulumi.DeleteBeforeReplace(true), pulumi.ReplacementTrigger(pulumi.String(text)),
		// As it is while its job runs, it would never be ready.
		pulumi.ReplaceOnChanges([]string{"*"}))
	registered := objects.Add(name, planned, append(kube.Needs(guard), needs...), kube.WorkloadTimeouts(),
		pulumi.ReplaceWith([]pulumi.Resource{guard}), pulumi.DeleteBeforeReplace(true), pulumi.ReplaceOnChanges([]string{"spec"}))
	addOperatedCompletion(objects, name, args, string(text), needs, registered)
}

func persiaJob(args JobArgs) *persiav1.PersiaJob {
	return &persiav1.PersiaJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: persiav1.Group + "/" + persiav1.Version, Kind: persiav1.Kind},
		ObjectMeta: kube.Meta(NamespaceName, args.Job.Name, kube.Labels("persia-job", args.Job.Name)),
		Spec:       persiaJobSpec(args),
	}
}

// guard returns a disruption budget. It keeps Kubernetes from evicting the pods of a job, because
// nothing recreates an evicted pod. It also counts them, and is ready once there are none: the
// operator creates the pods of a job once and does not retry, so it leaves a job without pods if
// one pod of the job's predecessor still ends.
func guard(args JobArgs, spec persiav1.PersiaJobSpec) *policyv1.PodDisruptionBudget {
	all := intstr.FromInt32(pods(spec))
	meta := kube.Meta(NamespaceName, args.Job.Name, kube.Labels("persia-job", args.Job.Name))
	// A new budget says that it expects no pods before they are counted, and has its
	// condition after.
	meta.Annotations = map[string]string{
		"pulumi.com/waitFor": `["condition=DisruptionAllowed=False","jsonpath={.status.expectedPods}=0"]`,
	}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &all,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{JobLabel: args.Job.Name}},
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
