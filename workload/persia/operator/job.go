package operator

import (
	"encoding/json"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/config"
	"persia/kube"
	"persia/workload/nats"
	"persia/workload/persia"
	"persia/workload/persia/operator/persiav1"
)

// JobArgs describes a training.
type JobArgs struct {
	Job config.Job
	// Image has the operator, and Python for the completion of the job.
	Image string
	// Images says where nodes pull images from.
	Images config.Images
	// Namespace is where its pods run.
	Namespace string
	// Broker is where the roles meet.
	Broker nats.Broker
	// Claims returns the claims for the mounts of a pod, which come from the job and its role.
	Claims func([]config.Mount) []persia.Claim
	// SystemPlacement is the placement of the pods that the job needs besides its own.
	SystemPlacement kube.Placement
	// Needs are created before the job and deleted after it: the operator, which alone can let a
	// job go, and the objects that the pods need.
	Needs []pulumi.CustomResource
}

// NewJob registers the PersiaJob of a training, of whose pods the operator makes one
// a replica.
func NewJob(ctx *pulumi.Context, name string, args JobArgs, opts ...pulumi.ResourceOption) (*persia.Job, error) {
	job := &persia.Job{}
	if err := ctx.RegisterComponentResource("persia:operator:Job", name, job, opts...); err != nil {
		return nil, err
	}
	child, err := persia.RegisterPolicy(ctx, name, job, persia.PolicyArgs{
		Namespace: args.Namespace, Job: args.Job.Name, Broker: args.Broker, Needs: args.Needs,
	})
	if err != nil {
		return nil, err
	}
	spec := jobSpec(args)
	guard, err := newGuard(ctx, name, args, spec, child)
	if err != nil {
		return nil, err
	}
	planned := persiaJob(args, spec)
	registered, err := kube.Register(ctx, name, planned, child, recreatedWith(guard), kube.WorkloadTimeouts())
	if err != nil {
		return nil, err
	}
	if err := registerCompletion(ctx, name, args, spec, child, kube.After([]pulumi.CustomResource{registered})); err != nil {
		return nil, err
	}
	job.Roles, job.Objects = roleOutputs(args.Job), []runtime.Object{planned}
	return job, ctx.RegisterResourceOutputs(job, pulumi.Map{})
}

func persiaJob(args JobArgs, spec persiav1.PersiaJobSpec) *persiav1.PersiaJob {
	return &persiav1.PersiaJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: persiav1.Group + "/" + persiav1.Version, Kind: persiav1.Kind},
		ObjectMeta: kube.Meta(args.Namespace, args.Job.Name, jobLabels(args.Job)),
		Spec:       spec,
	}
}

func jobLabels(job config.Job) map[string]string {
	return kube.Labels("persia-job", job.Name)
}

// roleOutputs returns the roles in the order of a stack file.
func roleOutputs(job config.Job) []persia.RoleOutput {
	var outputs []persia.RoleOutput
	for _, role := range job.Roles() {
		replicas := role.Replicas
		if job.Suspend {
			replicas = 0
		}
		outputs = append(outputs, persia.RoleOutput{Name: job.Name + "-" + role.Name, Replicas: replicas})
	}
	return outputs
}

// textOf returns a spec as text that distinguishes it from others.
func textOf(spec persiav1.PersiaJobSpec) (string, error) {
	text, err := json.Marshal(spec)
	return string(text), err
}
