package persia

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"

	"persia/config"
	"persia/kube"
	"persia/workload/queue"
)

// names are what a job's objects are called, and where its pods find each other.
type names struct {
	job, traffic, token, completion string
	// gateway and gatewayService are upstream's names, and what its dashboards expect.
	gateway, gatewayService string
	// master is the host of the first nn-worker, and coordinator the address of the coordinator there. They do not
	// depend on its node.
	master, coordinator string
	// index and revision are labels of a pod that Kubernetes sets: its index, since 1.28, and the revision of its
	// template, which changes with the job.
	index, revision string
	// labels are on the objects of the whole job.
	labels map[string]string
}

func namesOf(job config.Job) names {
	n := names{
		job:            job.Name,
		traffic:        kube.LabelName(job.Name, "traffic"),
		token:          kube.LabelName(job.Name, "token"),
		completion:     kube.LabelName(job.Name, config.Completion),
		gateway:        kube.LabelName(job.Name, config.MetricsGateway),
		gatewayService: kube.LabelName(job.Name, "metrics-gateway-service"),
		index:          appsv1.PodIndexLabel,
		revision:       appsv1.ControllerRevisionHashLabelKey,
		labels:         kube.Labels("job", job.Name),
	}
	nnWorkers := kube.LabelName(job.Name, nnWorker)
	service, set := nnWorkers, nnWorkers
	if job.Engine == config.EngineJobSet {
		service, set = job.Name, queue.JobOf(job.Name, nnWorker)
		n.index, n.revision = batchv1.JobCompletionIndexAnnotation, batchv1.ControllerUidLabel
	}
	n.master = set + "-0." + service + "." + NamespaceName + ".svc"
	n.coordinator = fmt.Sprintf("%s:%d", n.master, coordinatorPort)
	return n
}
