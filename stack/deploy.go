package stack

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/infra/gke"
	"persia/infra/gpu"
	"persia/infra/storage"
	"persia/kube"
	"persia/workload/nats"
	"persia/workload/persia"
	"persia/workload/priority"
)

// Deploy is the Pulumi program. It registers nothing unless the whole stack file
// is valid.
func Deploy(ctx *pulumi.Context) error {
	cfg, err := config.Load(ctx.GetConfig)
	if err != nil {
		return err
	}
	plan := cfg.Plan()
	if err := ctx.Log.Info("What the stack needs:\n\n"+plan.String(), nil); err != nil {
		return err
	}
	cluster, err := newCluster(ctx, cfg)
	if err != nil {
		return err
	}
	// What follows is inside the cluster, and needs its nodes.
	inCluster := pulumi.Provider(cluster.Provider)
	nodes := []pulumi.Resource{cluster}
	driver, err := gpu.NewDriver(ctx, "nvidia-driver", gpu.Args{
		Driver: cfg.NVIDIADriver,
		Needs:  nodes,
	}, inCluster)
	if err != nil {
		return err
	}
	priorities, err := priority.NewClasses(ctx, "persia", nodes, inCluster)
	if err != nil {
		return err
	}
	namespace, err := persia.NewNamespace(ctx, "persia", nodes, inCluster)
	if err != nil {
		return err
	}
	volumes, err := newVolumes(ctx, cfg, append(nodes, namespace), inCluster)
	if err != nil {
		return err
	}
	broker, err := newNATS(ctx, cfg, append(nodes, priorities), inCluster)
	if err != nil {
		return err
	}
	jobs, err := newJobs(ctx, cfg, slices.Concat(nodes, resources(volumes), []pulumi.Resource{driver, priorities, namespace, broker}), inCluster)
	if err != nil {
		return err
	}
	for name, value := range exports(plan, cluster, broker, volumes, jobs) {
		ctx.Export(name, value)
	}
	return nil
}

func newCluster(ctx *pulumi.Context, cfg *config.Stack) (*gke.Cluster, error) {
	if existing := cfg.Cluster.Existing; existing != nil {
		return gke.UseCluster(ctx, cfg.Cluster.Name, *existing)
	}
	return gke.NewCluster(ctx, cfg.Cluster.Name, gke.Args{
		Project:      cfg.Project,
		Cluster:      cfg.Cluster,
		NodePools:    cfg.Pools(),
		NVIDIADriver: cfg.NVIDIADriver,
	})
}

func newVolumes(ctx *pulumi.Context, cfg *config.Stack, needs []pulumi.Resource, inCluster pulumi.ResourceOption) ([]*storage.Volume, error) {
	var volumes []*storage.Volume
	for _, volume := range cfg.Volumes {
		registered, err := storage.NewVolume(ctx, volume.Name, storage.Args{
			Volume:         volume,
			Project:        cfg.Project,
			Namespace:      persia.NamespaceName,
			ServiceAccount: persia.ServiceAccountName,
			Needs:          needs,
		}, inCluster)
		if err != nil {
			return nil, err
		}
		volumes = append(volumes, registered)
	}
	return volumes, nil
}

func newNATS(ctx *pulumi.Context, cfg *config.Stack, needs []pulumi.Resource, inCluster pulumi.ResourceOption) (*nats.Cluster, error) {
	operator, err := nats.NewOperator(ctx, "nats-operator", nats.OperatorArgs{
		Placement: placement(cfg, cfg.SystemPoolName()),
		Needs:     needs,
	}, inCluster)
	if err != nil {
		return nil, err
	}
	return nats.NewCluster(ctx, cfg.NATS.Name, nats.ClusterArgs{
		NATS:      cfg.NATS,
		Placement: placement(cfg, cfg.NATS.NodePool),
		Needs:     append(needs, operator),
	}, inCluster)
}

func newJobs(ctx *pulumi.Context, cfg *config.Stack, needs []pulumi.Resource, inCluster pulumi.ResourceOption) (map[string]*persia.Job, error) {
	jobs := map[string]*persia.Job{}
	for _, job := range cfg.Jobs {
		registered, err := persia.NewJob(ctx, job.Name, persia.JobArgs{
			Job:            job,
			Namespace:      persia.NamespaceName,
			ServiceAccount: persia.ServiceAccountName,
			NATSURL:        nats.URL(cfg.NATS.Name),
			Claims:         claims(cfg, job),
			Placement: func(nodePool string) kube.Placement {
				return placement(cfg, nodePool)
			},
			SystemPlacement: placement(cfg, cfg.SystemPoolName()),
			Needs:           needs,
		}, inCluster)
		if err != nil {
			return nil, err
		}
		jobs[job.Name] = registered
	}
	return jobs, nil
}

// placement finds the nodes of a pool. Configuration names no other pools than
// those that there are.
func placement(cfg *config.Stack, nodePool string) kube.Placement {
	for _, pool := range cfg.Pools() {
		if pool.Name == nodePool {
			return gke.PlacementOn(pool)
		}
	}
	panic("no node pool " + nodePool) // refused by config
}

// claims are the volumes that job mounts.
func claims(cfg *config.Stack, job config.Job) []persia.Claim {
	var claims []persia.Claim
	for _, mount := range job.Mounts {
		for _, volume := range cfg.Volumes {
			if volume.Name != mount.Volume {
				continue
			}
			claims = append(claims, persia.Claim{
				Name:           volume.Claim,
				MountPath:      mount.MountPath,
				ReadOnly:       mount.ReadOnly,
				PodAnnotations: storage.PodAnnotations(volume),
			})
		}
	}
	return claims
}

func resources(volumes []*storage.Volume) []pulumi.Resource {
	var converted []pulumi.Resource
	for _, volume := range volumes {
		converted = append(converted, volume)
	}
	return converted
}
