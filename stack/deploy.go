package stack

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/config/input"
	"persia/infra/existing"
	"persia/infra/gke"
	"persia/infra/gpu"
	"persia/infra/lastupdate"
	"persia/infra/stackid"
	"persia/kube"
	"persia/stack/effects"
	"persia/workload/nats"
	"persia/workload/persia"
	"persia/workload/priority"
)

// Deploy is the Pulumi program. It reads the files next to Pulumi.yaml.
func Deploy(ctx *pulumi.Context) error {
	return DeployFrom(ctx, os.DirFS(cmp.Or(ctx.RootDirectory(), ".")))
}

// DeployFrom deploys the stack whose file, and the files that it names, are in files. It
// registers nothing unless the whole stack file is valid.
func DeployFrom(ctx *pulumi.Context, files fs.FS) error {
	if err := input.CheckKeys(files, ctx.Project(), ctx.Stack(), config.Keys()); err != nil {
		return err
	}
	cfg, err := config.Load(ctx.GetConfig, files)
	if err != nil {
		return err
	}
	if err := config.CheckSecrets(ctx, files); err != nil {
		return err
	}
	last, err := lastupdate.Read(ctx)
	if err != nil {
		return err
	}
	plan := cfg.Plan()
	plan.LastHourlyCost = lastHourlyCost(last.Outputs)
	if err := ctx.Log.Info("What the stack needs:\n\n"+plan.String(), nil); err != nil {
		return err
	}
	warnings := cfg.Warnings()
	if len(last.Outputs) == 0 { // no update has succeeded
		warnings = slices.Concat(warnings, cfg.FirstWarnings())
	}
	for _, warning := range warnings {
		if err := ctx.Log.Warn(warning, nil); err != nil {
			return err
		}
	}
	if err := checkExisting(ctx, cfg); err != nil {
		return err
	}
	if err := gke.CheckRanges(cfg.Project, cfg.Cluster, last.Resources); err != nil {
		return err
	}
	before := effects.Read(last.Resources)
	replaced := gke.Replaced(cfg.Project, cfg.Cluster, last.Resources)
	if err := gke.CheckReplaced(replaced, cfg.Cluster, before.Running()); err != nil {
		return err
	}
	if replaced == nil {
		if err := checkOrder(cfg, plan, before); err != nil {
			return err
		}
	}
	if warning := gke.ReplaceWarning(replaced, cfg.Cluster); warning != "" {
		if err := ctx.Log.Warn(warning, nil); err != nil {
			return err
		}
	}
	google, err := newGoogle(ctx, cfg.Project)
	if err != nil {
		return err
	}
	data, err := findStorage(ctx, cfg, last, google)
	if err != nil {
		return err
	}
	cluster, err := newCluster(ctx, cfg, data, last)
	if err != nil {
		return err
	}
	// What follows is inside the cluster, and comes after its nodes.
	inCluster := pulumi.Composite(pulumi.Provider(cluster.Provider), data.inGoogle())
	driver, err := gpu.NewDriver(ctx, "nvidia-driver", gpu.Args{Driver: cfg.NVIDIADriver}, inCluster)
	if err != nil {
		return err
	}
	priorities, err := priority.NewClasses(ctx, "persia", inCluster)
	if err != nil {
		return err
	}
	policies, err := newPolicies(ctx, cfg, inCluster)
	if err != nil {
		return err
	}
	natsOperator, err := nats.NewOperator(ctx, "nats-operator", nats.OperatorArgs{
		Scope:     cfg.NATS.OperatorScope,
		Images:    cfg.Images,
		Placement: placement(cfg, cfg.SystemPoolName()),
	}, inCluster)
	if err != nil {
		return err
	}
	namespace, err := persia.NewNamespace(ctx, "persia", persia.NamespaceArgs{
		HostPaths:         cfg.MountsHostPaths(),
		ManagedPrometheus: hasManagedPrometheus(cfg.Cluster),
		MonitoringNeeds:   natsOperator.Objects,
	}, inCluster)
	if err != nil {
		return err
	}
	volumes, err := newVolumes(ctx, cfg, data, namespace.Objects, inCluster)
	if err != nil {
		return err
	}
	natsNeeds := slices.Concat(priorities.Objects, policies.Objects, namespace.Objects, natsOperator.Objects)
	brokers, err := newNATS(ctx, cfg, natsNeeds, inCluster)
	if err != nil {
		return err
	}
	operator, err := newJobOperator(ctx, cfg, cluster, slices.Concat(policies.Objects, namespace.Objects), inCluster)
	if err != nil {
		return err
	}
	jobSet, err := newJobSet(ctx, cfg, slices.Concat(policies.Objects, namespace.Objects), inCluster)
	if err != nil {
		return err
	}
	queues, err := newQueues(ctx, cfg, slices.Concat(policies.Objects, namespace.Objects, jobSet), inCluster)
	if err != nil {
		return err
	}
	jobNeeds := slices.Concat(driver.Objects, priorities.Objects, policies.Objects, namespace.Objects, claims(volumes), operator, jobSet, queues)
	jobs, err := newJobs(ctx, cfg, cluster, brokers, volumes, jobNeeds, inCluster)
	if err != nil {
		return err
	}
	installed, err := newPEDL(ctx, cfg, data, driver.Objects, cluster)
	if err != nil {
		return err
	}
	d := deployed{
		cfg: cfg, plan: plan, data: data, cluster: cluster, brokers: brokers, volumes: volumes, jobs: jobs, pedl: installed,
	}
	if text := effects.Text(d.effects(before, replaced)); text != "" {
		if err := ctx.Log.Warn(text, nil); err != nil {
			return err
		}
	}
	d.export(ctx)
	return nil
}

// newGoogle registers the provider of Google Cloud, unless the stack has no project, as on an existing
// cluster. The default provider has no project either: it warns in every command, and does not
// check its credentials.
func newGoogle(ctx *pulumi.Context, project string) (pulumi.ProviderResource, error) {
	if project == "" {
		return nil, nil
	}
	return gcp.NewProvider(ctx, "google", &gcp.ProviderArgs{Project: pulumi.String(project)})
}

func newCluster(ctx *pulumi.Context, cfg *config.Stack, data *storedData, last lastupdate.State) (*gke.Cluster, error) {
	if existing := cfg.Cluster.Existing; existing != nil {
		return gke.UseCluster(ctx, cfg.Cluster.Name, *existing, needsAdopter(cfg))
	}
	return gke.NewCluster(ctx, cfg.Cluster.Name, gke.Args{
		Project:      cfg.Project,
		Cluster:      cfg.Cluster,
		NodePools:    cfg.Pools(),
		NVIDIADriver: cfg.NVIDIADriver,
		Images:       cfg.Images,
		KeepNetwork:  data.keepsNetwork(cfg),
		AdoptNetwork: data.network,
		Keys:         data.keys,
		Adopts:       needsAdopter(cfg),
		LastOutputs:  last.Outputs,
	}, pulumi.Provider(data.google))
}

// needsAdopter reports whether a part of the stack registers objects that may exist.
func needsAdopter(cfg *config.Stack) bool {
	return cfg.UsesOperator() || keepsDatabaseClaim(cfg)
}

// checkExisting refuses an existing cluster that cannot hold the stack. It only warns about a
// cluster that does not answer: the provider then reports why.
func checkExisting(ctx *pulumi.Context, cfg *config.Stack) error {
	if cfg.Cluster.Existing == nil {
		return nil
	}
	err := existing.Check(ctx.Context(), cfg.Cluster, stackid.Of(ctx).String())
	if err == nil && cfg.HasQueues() && cfg.Queue.Existing {
		err = existing.CheckQueues(ctx.Context(), cfg.Cluster)
	}
	if errors.Is(err, existing.ErrUnknown) {
		return ctx.Log.Warn(err.Error(), nil)
	}
	return err
}

// hasManagedPrometheus reports whether the cluster is known to have Managed Service for
// Prometheus. An existing cluster may lack its kinds.
func hasManagedPrometheus(cluster config.Cluster) bool {
	return cluster.Existing == nil && cluster.Monitoring.ManagedPrometheus
}

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

// placement returns the placement of pods on a pool.
func placement(cfg *config.Stack, nodePool string) kube.Placement {
	pool, ok := cfg.Pool(nodePool)
	if !ok {
		panic("no node pool " + nodePool) // refused by config
	}
	return gke.PlacementOn(pool)
}
