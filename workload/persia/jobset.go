package persia

import (
	_ "embed"
	"maps"

	batchv1 "k8s.io/api/batch/v1"

	"persia/kube"
	"persia/workload/queue"
)

// jobSet returns all roles of a job, each as an Indexed Job. It is complete when nn-worker 0 is, which ends after all
// nn-workers and dataloaders have finished: its coordinator counts them. The servers end then, and so does a
// substitute that starts too late to hear of the end.
//
// The coordinator alone decides about attempts, so no failure restarts the JobSet.
func jobSet(args JobArgs, names names, roles []role) *queue.JobSet {
	spec := queue.JobSetSpec{
		Network:       map[string]any{"enableDNSHostnames": true, "subdomain": names.job, "publishNotReadyAddresses": true},
		SuccessPolicy: map[string]any{"operator": "All", "targetReplicatedJobs": []string{nnWorker}},
		FailurePolicy: map[string]any{"maxRestarts": 0},
	}
	for _, role := range roles {
		job := queue.ReplicatedJob{Name: role.Name, Replicas: 1, Template: jobTemplate(role)}
		spec.ReplicatedJobs = append(spec.ReplicatedJobs, job)
	}
	meta := kube.Meta(NamespaceName, names.job, maps.Clone(names.labels))
	meta.Annotations = args.Job.Contract().Annotation()
	maps.Copy(meta.Labels, args.QueueLabels)
	maps.Copy(meta.Annotations, args.QueueAnnotations)
	if !queued(args) || args.Job.Suspend {
		spec.Suspend = &args.Job.Suspend
	}
	return queue.NewJobSet(meta, spec)
}

// queued reports whether Kueue admits the job.
func queued(args JobArgs) bool { return len(args.QueueLabels) > 0 }

//go:embed rolejob.yaml
var roleJobManifest string

func jobTemplate(role role) batchv1.JobTemplateSpec {
	job := kube.Manifest(roleJobManifest, map[string]any{
		"Labels": role.labels, "Replicas": role.Replicas, "Ends": role.Name == nnWorker,
	})[0].(*batchv1.Job)
	pod, own := role.pods, job.Spec.Template.Spec
	pod.Spec.RestartPolicy, pod.Spec.Tolerations = own.RestartPolicy, append(pod.Spec.Tolerations, own.Tolerations...)
	job.Spec.Template = pod
	return batchv1.JobTemplateSpec{ObjectMeta: job.ObjectMeta, Spec: job.Spec}
}
