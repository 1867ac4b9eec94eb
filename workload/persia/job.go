package persia

import (
	"crypto/rand"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/kube"
	"persia/workload/nats"
	"persia/workload/queue"
)

// JobArgs describes a training.
type JobArgs struct {
	Job config.Job
	// Stack is the full name of the stack.
	Stack string
	// Images says where nodes pull images from.
	Images config.Images
	// OperatorImage has PERSIA's operator, and Python for the completion of its jobs.
	OperatorImage string
	// ServiceAccount is the name of the service account that the replicas run as, which the job registers.
	ServiceAccount string `pulumi:"serviceAccount"`
	// Broker is where the roles meet. It is ready when its resources in Needs are.
	Broker nats.Broker
	// Claims are the names of the claims of the stack's volumes, by volume.
	Claims map[string]string
	// PodAnnotations are what others than the program read on pods: the drivers of volumes, and GKE. They are by
	// role.
	PodAnnotations map[string]map[string]string
	// Placements are the nodes of each node pool.
	Placements map[string]kube.Placement
	// SystemPlacement is the placement of the pods that the job needs besides its roles.
	SystemPlacement kube.Placement
	// QueueLabels identify the job to Kueue, if it waits in a queue.
	QueueLabels map[string]string
	// Predicted is the share of useful hours in the plan, or "".
	Predicted string `pulumi:"usefulHours"`
	// Needs come before the roles: driver, priorities, namespace, claims, NATS.
	Needs []pulumi.CustomResource
}

// NewJob registers a training: its roles, and the gateway of their metrics.
func NewJob(r *kube.Registrar, name string, args JobArgs) {
	objects := r.Component("persia:workload:Job", name)
	objects.Outputs = args
	account := objects.Add(name, serviceAccount(args), args.Needs)
	needs := addPolicy(objects, name, args, kube.Needs(account))
	// Each run of the program makes another token, and only the first one is ever used.
	needs = append(needs, objects.Add(name+"-token", tokenOf(args), needs, pulumi.IgnoreChanges([]string{"data"})))
	if args.Job.EnableMetrics {
		objects.Add(name+"-metrics-gateway", metricsService(args), needs)
		if !runsGateway(args) {
			objects.Add(name+"-metrics-gateway", metricsDeployment(args), needs, kube.WorkloadTimeouts())
		}
	}
	addCompletion(objects, name, completion(args), needs)
	if args.Job.Engine == config.EngineJobSet {
		addJobSet(objects, name, args, needs)
	} else {
		addStatefulSets(objects, name, args, needs)
	}
}

// addStatefulSets registers a StatefulSet for each role, and the headless service that gives its replicas their
// names. A role has no disruption budget: the first eviction stops the training of all roles, and a budget would only
// keep GKE from draining the rest of the node, for an hour in each round of an upgrade.
func addStatefulSets(objects *kube.Objects, name string, args JobArgs, needs []pulumi.CustomResource) {
	for _, role := range roles(args.Job) {
		name := name + "-" + role.Name
		service := objects.Add(name, headlessService(args, role), needs)
		objects.Add(name, statefulSet(args, role), append(kube.Needs(service), needs...), kube.RolloutTimeouts(role.config.Replicas))
	}
}

// addJobSet registers a JobSet of all roles.
func addJobSet(objects *kube.Objects, name string, args JobArgs, needs []pulumi.CustomResource) {
	set := jobSet(args)
	if queued(args) && args.Job.Suspend {
		// Kueue would resume a suspended JobSet as soon as there is room.
		objects.Planned = append(objects.Planned, set)
		return
	}
	objects.Add(name, set, needs, queue.JobSetReplaced(), kube.WorkloadTimeouts())
}

// serviceAccount returns the identity of the job's pods. It has rights outside of the cluster through Workload
// Identity.
func serviceAccount(args JobArgs) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		ObjectMeta:                   kube.Meta(NamespaceName, args.ServiceAccount, kube.Labels("job", args.Job.Name)),
		AutomountServiceAccountToken: new(false),
	}
}

const tokenKey = "token"

// tokenOf returns the Secret by which the coordinator knows the pods of its job.
func tokenOf(args JobArgs) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: kube.Meta(NamespaceName, tokenSecret(args.Job), kube.Labels("job", args.Job.Name)),
		Data:       map[string][]byte{tokenKey: []byte(rand.Text())},
	}
}

func tokenSecret(job config.Job) string { return kube.LabelName(job.Name, "token") }

// tokenEnv returns the variable with the token.
func tokenEnv(job config.Job) corev1.EnvVar {
	return corev1.EnvVar{Name: "PERSIA_TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: tokenSecret(job)}, Key: tokenKey,
	}}}
}

func objectName(job config.Job, role role) string {
	return kube.LabelName(job.Name, role.Name)
}
