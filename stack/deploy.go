package stack

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/config/clusterspec"
	"persia/config/stackfile"
	"persia/infra/existing"
	"persia/infra/gke"
	"persia/infra/gpu"
	"persia/infra/lastupdate"
	"persia/infra/stackid"
	"persia/kube"
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
	if err := stackfile.CheckKeys(files, ctx.Project(), ctx.Stack(), config.Keys()); err != nil {
		return err
	}
	cfg, err := config.Load(ctx.GetConfig, files)
	if err != nil {
		return err
	}
	if err := config.CheckSecrets(ctx, files); err != nil {
		return err
	}
	plan := cfg.Plan()
	if err := ctx.Log.Info("What the stack needs:\n\n"+plan.String(), nil); err != nil {
		return err
	}
	for _, warning := range cfg.Warnings() {
		if err := ctx.Log.Warn(warning, nil); err != nil {
			return err
		}
	}
	if err := checkExisting(ctx, cfg); err != nil {
		return err
	}
	last, err := lastupdate.Read(ctx)
	if err != nil {
		return err
	}
	if err := gke.CheckNodeRange(cfg.Project, cfg.Cluster, last.Resources); err != nil {
		return err
	}
	data, err := findStorage(ctx, cfg, last)
	if err != nil {
		return err
	}
	cluster, err := newCluster(ctx, cfg, data, last)
	if err != nil {
		return err
	}
	// What follows is inside the cluster, and comes after its nodes.
	inCluster := pulumi.Provider(cluster.Provider)
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
	namespace, err := persia.NewNamespace(ctx, "persia", persia.NamespaceArgs{
		HostPaths:         cfg.MountsHostPaths(),
		ManagedPrometheus: hasManagedPrometheus(cfg.Cluster),
	}, inCluster)
	if err != nil {
		return err
	}
	volumes, err := newVolumes(ctx, cfg, data, namespace.Objects, inCluster)
	if err != nil {
		return err
	}
	brokers, err := newNATS(ctx, cfg, slices.Concat(priorities.Objects, policies.Objects, namespace.Objects), inCluster)
	if err != nil {
		return err
	}
	operator, err := newJobOperator(ctx, cfg, cluster, slices.Concat(policies.Objects, namespace.Objects), inCluster)
	if err != nil {
		return err
	}
	jobNeeds := slices.Concat(driver.Objects, priorities.Objects, policies.Objects, namespace.Objects, claims(volumes), operator)
	jobs, err := newJobs(ctx, cfg, brokers, volumes, jobNeeds, inCluster)
	if err != nil {
		return err
	}
	installed, err := newPEDL(ctx, cfg, data, driver.Objects, cluster)
	if err != nil {
		return err
	}
	ctx.Export("serviceAccounts", serviceAccounts(ctx, cfg))
	for name, value := range exports(cfg, plan, cluster, brokers[0], data, volumes, jobs, installed) {
		ctx.Export(name, value)
	}
	return nil
}

func newCluster(ctx *pulumi.Context, cfg *config.Stack, data *storedData, last lastupdate.State) (*gke.Cluster, error) {
	if existing := cfg.Cluster.Existing; existing != nil {
		return gke.UseCluster(ctx, cfg.Cluster.Name, *existing)
	}
	return gke.NewCluster(ctx, cfg.Cluster.Name, gke.Args{
		Project:      cfg.Project,
		Cluster:      cfg.Cluster,
		NodePools:    cfg.Pools(),
		NVIDIADriver: cfg.NVIDIADriver,
		Images:       cfg.Images,
		KeepNetwork:  data.keepsNetwork(cfg),
		AdoptNetwork: data.hasNetwork(cfg),
		Keys:         data.keys,
		LastOutputs:  last.Outputs,
	})
}

// checkExisting refuses an existing cluster that cannot hold the stack. What it does not
// say is only worth a warning: the provider reports why the cluster does not answer.
func checkExisting(ctx *pulumi.Context, cfg *config.Stack) error {
	if cfg.Cluster.Existing == nil {
		return nil
	}
	err := existing.Check(ctx.Context(), cfg.Cluster, stackid.Of(ctx).String())
	if errors.Is(err, existing.ErrUnknown) {
		return ctx.Log.Warn(err.Error(), nil)
	}
	return err
}

// hasManagedPrometheus reports whether the cluster has Managed Service for Prometheus.
// Nothing is known of an existing cluster, and its kinds may be missing.
func hasManagedPrometheus(cluster clusterspec.Cluster) bool {
	return cluster.Existing == nil && cluster.Monitoring.ManagedPrometheus
}

// newNATS registers the operator, and after it and what the servers and their clients
// need, the NATS cluster of each job, in the order of the jobs. A stack without jobs
// has one for other clients.
func newNATS(ctx *pulumi.Context, cfg *config.Stack, needs []pulumi.CustomResource, inCluster pulumi.ResourceOption) ([]*nats.Cluster, error) {
	operator, err := nats.NewOperator(ctx, "nats-operator", nats.OperatorArgs{
		Scope:     cfg.NATS.OperatorScope,
		Images:    cfg.Images,
		Placement: placement(cfg, cfg.SystemPoolName()),
	}, inCluster)
	if err != nil {
		return nil, err
	}
	var brokers []*nats.Cluster
	for _, cluster := range cfg.NATSClusters() {
		broker, err := nats.NewCluster(ctx, cluster.Name, nats.ClusterArgs{
			NATS:              cluster.Settings,
			Images:            cfg.Images,
			Placement:         placement(cfg, cluster.NodePool),
			Clients:           nats.Clients{Namespace: persia.NamespaceName, Pods: persia.PodsOf(cluster.Job)},
			ManagedPrometheus: hasManagedPrometheus(cfg.Cluster),
			Needs:             slices.Concat(needs, operator.Objects),
		}, inCluster)
		if err != nil {
			return nil, err
		}
		brokers = append(brokers, broker)
	}
	return brokers, nil
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
