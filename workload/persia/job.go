package persia

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config/imagespec"
	"persia/config/jobspec"
	"persia/kube"
	"persia/workload/nats"
)

// JobArgs describes a training.
type JobArgs struct {
	Job jobspec.Job
	// Images says where nodes pull images from.
	Images imagespec.Settings
	// Namespace is where the replicas run, and ServiceAccount the name of the service
	// account that they run as, which the job registers.
	Namespace      string
	ServiceAccount string
	// Broker is where the roles meet. It is ready when what stands among Needs is.
	Broker nats.Broker
	// Claims are what a pod with some mounts has: those of the job and of a role.
	Claims func([]jobspec.Mount) []Claim
	// PodAnnotations are what the drivers of a role's volumes want of its pods.
	PodAnnotations func(jobspec.Kind) map[string]string
	// Placement finds the nodes of a node pool.
	Placement func(nodePool string) kube.Placement
	// SystemPlacement is for what the job needs in addition to its roles.
	SystemPlacement kube.Placement
	// Needs come before the roles: driver, priorities, namespace, claims, NATS.
	Needs []pulumi.CustomResource
}

// Claim is a PersistentVolumeClaim and where it is mounted.
type Claim struct {
	Name      string
	MountPath string
	ReadOnly  bool
}

// Job is a training: its roles, and the gateway of their metrics.
type Job struct {
	pulumi.ResourceState

	// Roles are the StatefulSets, by name.
	Roles []RoleOutput
}

// RoleOutput says what became of a role.
type RoleOutput struct {
	Name     string
	Replicas int
}

// NewJob registers a training.
func NewJob(ctx *pulumi.Context, name string, args JobArgs, opts ...pulumi.ResourceOption) (*Job, error) {
	job := &Job{}
	if err := ctx.RegisterComponentResource("persia:workload:Job", name, job, opts...); err != nil {
		return nil, err
	}
	account, err := kube.Register(ctx, name, serviceAccount(args), kube.Child(job, args.Needs))
	if err != nil {
		return nil, err
	}
	child, err := RegisterPolicy(ctx, name, job, PolicyArgs{
		Namespace: args.Namespace, Job: args.Job.Name, Broker: args.Broker, Needs: []pulumi.CustomResource{account},
	})
	if err != nil {
		return nil, err
	}
	if args.Job.EnableMetrics {
		if err := newMetricsGateway(ctx, name, args, child); err != nil {
			return nil, err
		}
	}
	if args.Job.Engine == jobspec.EngineStatefulSet {
		if err := registerCompletion(ctx, name, args, child); err != nil {
			return nil, err
		}
	}
	for _, role := range roles(args.Job, args.Namespace) {
		if err := newRole(ctx, name, args, role, child); err != nil {
			return nil, err
		}
		job.Roles = append(job.Roles, RoleOutput{
			Name:     objectName(args.Job, role),
			Replicas: replicasOf(args.Job, role),
		})
	}
	return job, ctx.RegisterResourceOutputs(job, pulumi.Map{})
}

// serviceAccount is the identity of the job's pods. Its rights outside of the cluster
// come through Workload Identity.
func serviceAccount(args JobArgs) *corev1.ServiceAccount {
	noToken := false
	return &corev1.ServiceAccount{
		ObjectMeta:                   kube.Meta(args.Namespace, args.ServiceAccount, kube.Labels("job", args.Job.Name)),
		AutomountServiceAccountToken: &noToken,
	}
}

// newRole registers a role's StatefulSet, the headless service that gives its
// replicas their names, and how many of them may be evicted.
func newRole(ctx *pulumi.Context, name string, args JobArgs, role role, child pulumi.ResourceOption) error {
	name = name + "-" + role.Name
	service, err := kube.Register(ctx, name, headlessService(args, role), child)
	if err != nil {
		return err
	}
	if _, err := kube.Register(ctx, name, disruptionBudget(args, role), child); err != nil {
		return err
	}
	_, err = kube.Register(ctx, name, statefulSet(args, role), child,
		kube.After([]pulumi.CustomResource{service}), kube.RolloutTimeouts(role.config.Replicas))
	return err
}

func objectName(job jobspec.Job, role role) string {
	return kube.LabelName(job.Name, role.Name)
}
