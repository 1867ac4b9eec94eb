package persia

import (
	"maps"
	"math"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/kube"
	"persia/workload/queue"
)

// jobSet returns all roles of a job, each as an Indexed Job. It is complete when nn-worker 0 is, which ends after all
// nn-workers and dataloaders have finished: its coordinator counts them. The servers end then, and so does a
// substitute that starts too late to hear of the end.
//
// The coordinator alone decides about attempts, so no number of failures ends a Job, and none restarts the JobSet.
func jobSet(args JobArgs, names names, roles []role) *queue.JobSet {
	spec := queue.JobSetSpec{
		Network:       queue.Network{EnableDNSHostnames: true, Subdomain: names.job, PublishNotReadyAddresses: true},
		SuccessPolicy: queue.SuccessPolicy{Operator: "All", TargetReplicatedJobs: []string{nnWorker}},
		FailurePolicy: queue.FailurePolicy{MaxRestarts: 0},
	}
	for _, role := range roles {
		template := jobTemplate(role)
		if role.Name == nnWorker {
			template.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("0")}}}
		}
		spec.ReplicatedJobs = append(spec.ReplicatedJobs, queue.ReplicatedJob{Name: role.Name, Replicas: 1, Template: template})
	}
	meta := kube.Meta(NamespaceName, names.job, maps.Clone(names.labels))
	meta.Annotations = args.Job.Contract().Annotation()
	maps.Copy(meta.Labels, args.QueueLabels)
	if !queued(args) || args.Job.Suspend {
		spec.Suspend = &args.Job.Suspend
	}
	return queue.NewJobSet(meta, spec)
}

// queued reports whether Kueue admits the job.
func queued(args JobArgs) bool { return len(args.QueueLabels) > 0 }

func jobTemplate(role role) batchv1.JobTemplateSpec {
	pod := role.pods
	// A container that ends starts again in its pod, as in a StatefulSet.
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, leaveLostNodes()...)
	return batchv1.JobTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: role.labels},
		Spec: batchv1.JobSpec{
			Parallelism:    new(int32(role.Replicas)),
			Completions:    new(int32(role.Replicas)),
			CompletionMode: new(batchv1.IndexedCompletion),
			// A substitute waits longer the more pods of its index have failed. Without a limit for each index, all
			// pods of the role would count: a drained node of four pods would take 80 seconds, and each lost node
			// after the sixth ten minutes.
			BackoffLimitPerIndex: new(int32(math.MaxInt32)),
			// The pod of a lost node stays until its node is gone, so a substitute does not wait for that. A
			// podFailurePolicy would not allow this.
			PodReplacementPolicy: new(batchv1.TerminatingOrFailed),
			Template:             pod,
		},
	}
}

// lostNodeSeconds is how long a pod stays on a node that no longer answers, instead of five minutes: as long as the
// Job controller waits before the first substitute, so a node that is back before keeps its pods.
const lostNodeSeconds = 10

// leaveLostNodes makes a pod leave a node that does not answer. A pod of a StatefulSet would leave its node too, but
// have no successor before the node is deleted.
func leaveLostNodes() []corev1.Toleration {
	var tolerations []corev1.Toleration
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerations = append(tolerations, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(lostNodeSeconds)),
		})
	}
	return tolerations
}
