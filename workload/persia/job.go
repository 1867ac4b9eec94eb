// Package persia runs PERSIA training jobs. A training job has four roles. One builder turns each [role] into a
// StatefulSet, or a part of a JobSet.
package persia

import (
	"crypto/rand"
	_ "embed"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/capacity"
	"persia/config"
	"persia/kube"
	"persia/workload/nats"
	"persia/workload/queue"
)

// JobArgs describes a training.
type JobArgs struct {
	Job config.Job
	// Stack is the full name of the stack.
	Stack  string
	Images config.Images
	// OperatorImage has PERSIA's operator, and Python for the completion of its jobs.
	OperatorImage string
	// ServiceAccount is the name of the service account that the replicas run as, which the job registers.
	ServiceAccount string `pulumi:"serviceAccount"`
	// Broker is where the roles meet. It is ready when its resources in Needs are.
	Broker nats.Broker
	// Claims are the names of the claims of the stack's volumes, by volume.
	Claims map[string]string
	// PodAnnotations are what others than the program read on pods: the drivers of volumes, and GKE. They are by role.
	PodAnnotations map[string]map[string]string
	// Placements are the nodes of each node pool.
	Placements map[string]kube.Placement
	// SystemPlacement is the placement of the pods that the job needs besides its roles.
	SystemPlacement kube.Placement
	// QueueLabels identify the job to Kueue, if it waits in a queue.
	QueueLabels map[string]string
	// QueueAnnotations are for the provisioner, if it asks for one of several pools.
	QueueAnnotations map[string]string
	// Predicted is the share of useful hours in the plan, or "".
	Predicted string `pulumi:"usefulHours"`
	// Needs come before the roles: driver, priorities, namespace, claims, NATS.
	Needs []pulumi.CustomResource
}

// NewJob registers a training: its roles, and the gateway of their metrics. It resolves names and roles first, and then
// makes objects of them.
func NewJob(r *kube.Registrar, name string, args JobArgs) {
	names := namesOf(args.Job)
	roles := rolesOf(args, names)
	objects := r.Component("persia:workload:Job", name)
	objects.Outputs = args
	of := jobObjects(args, names)
	account := objects.Add(name, of["ServiceAccount"], args.Needs)
	// The other objects of the job come after its policy: no pod runs without it. So needs are once in the state, and
	// not with every object, where they would be the largest part of a stack of many jobs.
	needs := kube.Needs(objects.Add(name, of["NetworkPolicy"], kube.Needs(account)))
	// Each run of the program makes another token, and only the first one is ever used.
	needs = append(needs, objects.Add(name+"-token", of["Secret"], needs, pulumi.IgnoreChanges([]string{"data"})))
	if args.Job.EnableMetrics {
		objects.Add(name+"-metrics-gateway", of["Service"], needs)
		if !runsGateway(args.Job) {
			objects.Add(name+"-metrics-gateway", of["Deployment"], needs, kube.WorkloadTimeouts())
		}
	}
	addCompletion(objects, name, completion(args, names, roles, args.gatewayImage()), needs)
	if args.Job.Engine == config.EngineJobSet {
		set := jobSet(args, names, roles)
		if queued(args) && args.Job.Suspend {
			// Kueue would resume a suspended JobSet as soon as there is room.
			objects.Planned = append(objects.Planned, set)
		} else {
			objects.Add(name, set, needs, queue.JobSetReplaced(), kube.WorkloadTimeouts())
		}
		return
	}
	// A role has no disruption budget: the first eviction stops the training of all roles, and a budget would only keep
	// GKE from draining the rest of the node, for an hour in each round of an upgrade.
	for _, role := range roles {
		name, of := name+"-"+role.Name, roleObjects(role, args.Job.Contract())
		service := objects.Add(name, of["Service"], needs)
		objects.Add(name, of["StatefulSet"], append(kube.Needs(service), needs...), kube.RolloutTimeouts(role.Replicas))
	}
}

//go:embed job.yaml
var jobManifest string

// jobObjects returns, by their kinds, the objects of a job besides its roles and its completion.
func jobObjects(args JobArgs, names names) map[string]runtime.Object {
	return kube.ByKind(jobManifest, map[string]any{
		"Job": names.job, "Labels": names.labels, "Account": args.ServiceAccount, "Token": names.token, "Secret": []byte(rand.Text()),
		"Traffic": names.traffic, "Egress": args.Broker.Egress, "Gateway": names.gateway, "GatewayService": names.gatewayService,
		"Image": args.gatewayImage(), "Placement": args.SystemPlacement, "Requests": kube.Requests(capacity.MetricsGateway),
	})
}

// gatewayImage returns the reference by which nodes pull the metrics gateway.
func (a JobArgs) gatewayImage() string {
	return a.Images.Reference(config.ImagePushgateway.Reference())
}

//go:embed role.yaml
var roleManifest string

// roleObjects returns the Service and the StatefulSet of a role, by their kinds.
func roleObjects(role role, contract config.Contract) map[string]runtime.Object {
	contract.Replicas = nil // another number of one role changes no other
	of := kube.ByKind(roleManifest, map[string]any{
		"Name": role.object, "Labels": role.labels, "Annotations": contract.Annotation(),
		"Selector": role.selector, "Port": role.Port, "Replicas": role.running,
	})
	of["StatefulSet"].(*appsv1.StatefulSet).Spec.Template = role.pods
	return of
}
