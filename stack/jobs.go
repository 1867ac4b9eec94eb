package stack

import (
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/infra/before"
	"persia/infra/gke"
	"persia/infra/storage"
	"persia/kube"
	"persia/workload/nats"
	"persia/workload/persia"
	"persia/workload/queue"
)

// newNATS registers, after needs, the NATS cluster of each job, in the order of the jobs. A stack
// without jobs has one for other clients.
func newNATS(ctx *pulumi.Context, cfg *config.Stack, needs []pulumi.CustomResource, inCluster pulumi.ResourceOption) ([]*nats.Cluster, error) {
	var brokers []*nats.Cluster
	for _, cluster := range cfg.NATSClusters() {
		broker, err := nats.NewCluster(ctx, cluster.Name, nats.ClusterArgs{
			NATS:              cluster.NATS,
			Images:            cfg.Images,
			Placement:         placement(cfg, cluster.NodePool),
			Clients:           nats.Clients{Namespace: persia.NamespaceName, Pods: persia.PodsOf(cluster.Job)},
			ManagedPrometheus: hasManagedPrometheus(cfg.Cluster),
			Needs:             needs,
		}, inCluster)
		if err != nil {
			return nil, err
		}
		brokers = append(brokers, broker)
	}
	return brokers, nil
}

// newJobOperator registers PERSIA's operator, if a job leaves its pods to it.
func newJobOperator(ctx *pulumi.Context, cfg *config.Stack, cluster *gke.Cluster, needs []pulumi.CustomResource, inCluster pulumi.ResourceOption) ([]pulumi.CustomResource, error) {
	if !cfg.UsesOperator() {
		return nil, nil
	}
	registered, err := persia.NewOperator(ctx, "persia-operator", persia.OperatorArgs{
		Image:        cfg.Operator.Image,
		Images:       cfg.Images,
		Placement:    placement(cfg, cfg.SystemPoolName()),
		Adopter:      cluster.Adopter,
		JobNamespace: persia.NamespaceName,
		Needs:        needs,
	}, inCluster)
	if err != nil {
		return nil, err
	}
	return registered.Objects, nil
}

// newJobSet registers the JobSet controller, if the stack needs it and the cluster lacks it.
func newJobSet(ctx *pulumi.Context, cfg *config.Stack, needs []pulumi.CustomResource, inCluster pulumi.ResourceOption) ([]pulumi.CustomResource, error) {
	if !cfg.InstallsJobSet() {
		return nil, nil
	}
	registered, err := queue.InstallJobSet(ctx, "jobset", controllerArgs(cfg, needs), inCluster)
	if err != nil {
		return nil, err
	}
	return registered.Objects, nil
}

// newJobs registers each job by its engine, and its own NATS, before which the job is deleted. The
// brokers are in the order of the jobs.
func newJobs(ctx *pulumi.Context, cfg *config.Stack, cluster *gke.Cluster, brokers []*nats.Cluster, volumes []*storage.Volume, needs []pulumi.CustomResource, inCluster pulumi.ResourceOption) (map[string]*persia.Job, error) {
	jobs := map[string]*persia.Job{}
	for i, job := range cfg.Jobs {
		var err error
		broker := brokers[i].Broker
		needs := slices.Concat(needs, brokers[i].Objects)
		switch job.Engine {
		case config.EngineStatefulSet, config.EngineJobSet:
			var grants []pulumi.CustomResource
			if grants, err = grantBuckets(ctx, cfg, cluster, &job, volumes, inCluster); err != nil {
				return nil, err
			}
			args := jobArgs(cfg, job, broker, slices.Concat(needs, grants))
			args.Stack, args.ServiceAccount = before.Of(ctx).String(), before.Of(ctx).ServiceAccount(job.Name)
			jobs[job.Name], err = persia.NewJob(ctx, job.Name, args, inCluster)
		case config.EngineOperator:
			// Nothing starts its pods again, so they come after all servers.
			args := jobArgs(cfg, job, broker, slices.Concat(needs, brokers[i].Ready))
			jobs[job.Name], err = persia.NewOperatedJob(ctx, job.Name, args, inCluster)
		}
		if err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

func jobArgs(cfg *config.Stack, job config.Job, broker nats.Broker, needs []pulumi.CustomResource) persia.JobArgs {
	return persia.JobArgs{
		Job:           job,
		Images:        cfg.Images,
		OperatorImage: cfg.Operator.Image,
		Namespace:     persia.NamespaceName,
		Broker:        broker,
		Claims:        claimsOf(cfg),
		PodAnnotations: func(role config.Kind) map[string]string {
			annotations := map[string]string{}
			if sidecar, ok := job.GCSFuseSidecar(role); ok {
				maps.Copy(annotations, storage.SidecarAnnotations(sidecar))
			}
			if role.Name == config.KindNNWorker.Name && cfg.AsksForNNWorkers(&job) {
				maps.Copy(annotations, queue.ProvisionedPods(job.Name))
			}
			return annotations
		},
		Placement: func(nodePool string) kube.Placement {
			return placement(cfg, nodePool)
		},
		SystemPlacement: placement(cfg, cfg.SystemPoolName()),
		QueueLabels:     queueLabels(job),
		Needs:           needs,
	}
}

// claimsOf finds the claims of volumes that are mounted.
func claimsOf(cfg *config.Stack) func([]config.Mount) []persia.Claim {
	return func(mounts []config.Mount) []persia.Claim {
		var claims []persia.Claim
		for _, mount := range mounts {
			for _, volume := range cfg.Storage {
				if volume.Name == mount.Volume {
					claims = append(claims, persia.Claim{Name: volume.Claim, MountPath: mount.MountPath, ReadOnly: mount.ReadOnly})
				}
			}
		}
		return claims
	}
}
