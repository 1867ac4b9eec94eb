package persia

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/kube"
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
