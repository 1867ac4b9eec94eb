package persia

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/kube"
	"persia/workload/queue"
)

// nnWorker is the name of the role that trains the dense part, and whose first replica coordinates the others.
var nnWorker = config.KindNNWorker.Name

// role is one of the four roles of a job, with all that an engine needs to run it.
type role struct {
	config.NamedRole
	// object is the name of the role's objects.
	object string
	// labels are on the role's objects and pods, and selector has the ones that select its pods.
	labels, selector map[string]string
	// running is the current number of replicas.
	running int32
	// pods is the template of the pods.
	pods corev1.PodTemplateSpec
}

// rolesOf resolves the roles of a job.
func rolesOf(args JobArgs, names names) []role {
	var roles []role
	for _, named := range inDataFlow(args.Job) {
		if named.Server && args.Job.Script != nil {
			named.Port = args.Job.Script.Port
		}
		role := role{NamedRole: named, object: kube.LabelName(names.job, named.Name), running: running(args.Job, named.Replicas)}
		role.selector = map[string]string{
			config.JobLabel:             names.job,
			"app.kubernetes.io/name":    role.Name,
			"app.kubernetes.io/part-of": "persia",
		}
		role.labels = kube.Labels(role.Name, role.object)
		maps.Copy(role.labels, role.selector)
		role.pods = podTemplate(args, names, role)
		roles = append(roles, role)
	}
	return roles
}

// inDataFlow returns the roles of a job in the order of their data flow: nn-workers, first in a stack file, come last.
func inDataFlow(job config.Job) []config.NamedRole {
	roles := job.Roles()
	return slices.Concat(roles[1:], roles[:1])
}

// running returns the current number of a job's replicas.
func running(job config.Job, replicas int) int32 {
	if job.Suspend {
		return 0
	}
	return int32(replicas)
}

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
