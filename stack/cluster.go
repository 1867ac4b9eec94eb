package stack

import (
	"errors"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/infra/before"
	"persia/infra/gke"
	"persia/kube"
)

// newGoogle registers the provider of Google Cloud, unless the stack has no project, as on an existing cluster. The
// default provider has no project either: it warns in every command, and does not check its credentials.
func newGoogle(ctx *pulumi.Context, project string) (pulumi.ProviderResource, error) {
	if project == "" {
		return nil, nil
	}
	return gcp.NewProvider(ctx, "google", &gcp.ProviderArgs{Project: pulumi.String(project)})
}

// newCluster registers the cluster, or a provider for an existing one.
func (d *deployment) newCluster() (*gke.Cluster, error) {
	cfg := d.cfg
	if existing := cfg.Cluster.Existing; existing != nil {
		return gke.UseCluster(d.ctx, cfg.Cluster.Name, *existing, needsAdopter(cfg))
	}
	return gke.NewCluster(d.ctx, cfg.Cluster.Name, gke.Args{
		Project:      cfg.Project,
		Cluster:      cfg.Cluster,
		NodePools:    cfg.Pools(),
		NVIDIADriver: cfg.NVIDIADriver,
		Images:       cfg.Images,
		KeepNetwork:  keepsNetwork(cfg),
		AdoptNetwork: d.data.network,
		Keys:         d.data.keys,
		Adopts:       needsAdopter(cfg),
		State:        d.before.Resources,
	}, pulumi.Provider(d.google))
}

// needsAdopter reports whether a part of the stack registers objects that may exist.
func needsAdopter(cfg *config.Stack) bool { return cfg.UsesOperator() || keepsDatabaseClaim(cfg) }

// checkExisting refuses an existing cluster that cannot hold the stack. It only warns about a cluster that does not
// answer: the provider then reports why.
func checkExisting(ctx *pulumi.Context, cfg *config.Stack, state before.State) error {
	if cfg.Cluster.Existing == nil {
		return nil
	}
	err := before.CheckCluster(ctx.Context(), cfg.Cluster, state)
	if err == nil && cfg.HasQueues() && cfg.Queue.Existing {
		err = before.CheckQueues(ctx.Context(), cfg.Cluster)
	}
	if errors.Is(err, before.ErrUnknown) {
		return ctx.Log.Warn(err.Error(), nil)
	}
	return err
}

// monitoring returns the service that evaluates the stack's alerts. An existing cluster may lack Google's kinds.
func monitoring(cluster config.Cluster) kube.Monitoring {
	switch {
	case cluster.Existing == nil && cluster.Monitoring.ManagedPrometheus:
		return kube.ManagedPrometheus
	case cluster.Existing != nil && cluster.Existing.PrometheusOperator:
		return kube.PrometheusOperator
	}
	return ""
}

// placement returns the placement of pods on a pool.
func placement(cfg *config.Stack, nodePool string) kube.Placement {
	pool, ok := cfg.Pool(nodePool)
	if !ok {
		panic("no node pool " + nodePool) // refused by config
	}
	return gke.PlacementOn(pool)
}
