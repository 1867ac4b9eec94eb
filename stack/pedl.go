package stack

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/infra/gke"
	"persia/infra/storage"
	"persia/workload/pedl"
)

// pedlInstallation holds the parts of PEDL that its output describes.
type pedlInstallation struct {
	config  *config.PEDL
	volume  *storage.Volume
	master  *pedl.Master
	support *pedl.SupportCheck
	// objects are the workloads and their configuration, for the effects of the update.
	objects []any
}

// newPEDL registers PEDL, if the stack has it, and what runs on GPUs after their
// driver.
func newPEDL(ctx *pulumi.Context, cfg *config.Stack, data *storedData, driver []pulumi.CustomResource, cluster *gke.Cluster) (*pedlInstallation, error) {
	if cfg.PEDL == nil {
		return nil, nil
	}
	installed, inCluster := &pedlInstallation{config: cfg.PEDL}, pulumi.Composite(pulumi.Provider(cluster.Provider), data.inGoogle())
	var adopter pulumi.ProviderResource
	if keepsDatabaseClaim(cfg) {
		adopter = cluster.Adopter
	}
	args := pedl.Args{
		PEDL:        *cfg.PEDL,
		Images:      cfg.Images,
		Placement:   placement(cfg, cfg.PEDL.NodePool),
		Tolerations: agentTolerations(cfg),
		Adopter:     adopter,
	}
	namespaces, err := pedl.NewNamespaces(ctx, "pedl", args, inCluster)
	if err != nil {
		return nil, err
	}
	masterNeeds, err := installed.newDatabase(ctx, cfg, data, args, namespaces.Objects, inCluster)
	if err != nil {
		return nil, err
	}
	installed.master, err = pedl.NewMaster(ctx, "pedl-master", args, masterNeeds, inCluster)
	if err != nil {
		return nil, err
	}
	agents, err := pedl.NewAgents(ctx, "pedl-agent", args, installed.master.ClusterIP,
		append(slices.Clip(driver), installed.master.Server), inCluster)
	if err != nil {
		return nil, err
	}
	installed.objects = slices.Concat(installed.objects, installed.master.Objects, []any{agents.Object})
	if check := cfg.PEDL.SupportCheck; check != nil {
		installed.support, err = pedl.NewSupportCheck(ctx, "test-pedl-support", cfg.Images, placement(cfg, check.NodePool),
			slices.Concat(namespaces.Objects, driver), inCluster)
	}
	return installed, err
}

// newDatabase registers the volume and the database, unless the database is elsewhere. It returns
// the connection for the master.
func (p *pedlInstallation) newDatabase(ctx *pulumi.Context, cfg *config.Stack, data *storedData, args pedl.Args, needs []pulumi.CustomResource, inCluster pulumi.ResourceOption) ([]pulumi.CustomResource, error) {
	if cfg.PEDL.Postgres.External != nil {
		return needs, nil
	}
	if volume, ok := cfg.PEDLDatabase(); ok {
		stored := data.volumeArgs(cfg, volume)
		stored.Namespace, stored.Contents, stored.Needs = pedl.NamespaceName, "databases", needs
		stored.Annotations = cfg.PEDL.Postgres.Persistence.Annotations
		registered, err := storage.NewVolume(ctx, volume.Name, stored, inCluster)
		if err != nil {
			return nil, err
		}
		p.volume, needs = registered, []pulumi.CustomResource{registered.Claim}
	}
	database, err := pedl.NewDatabase(ctx, "pedl-postgresql", args, needs, inCluster)
	if err != nil {
		return nil, err
	}
	p.objects = database.Objects
	return []pulumi.CustomResource{database.Server}, nil
}

// keepsDatabaseClaim reports whether the database of PEDL is on a claim that must not go with its
// namespace.
func keepsDatabaseClaim(cfg *config.Stack) bool {
	if cfg.PEDL == nil {
		return false
	}
	postgreSQL := cfg.PEDL.Postgres
	return postgreSQL.External == nil &&
		(postgreSQL.Persistence.ExistingClaim != "" || postgreSQL.Persistence.StorageClass != "")
}

// agentTolerations are for all taints of the pools that host agents.
func agentTolerations(cfg *config.Stack) []corev1.Toleration {
	var tolerations []corev1.Toleration
	for _, pool := range cfg.Pools() {
		if slices.Contains(cfg.PEDL.Agent.NodePools, pool.Name) {
			tolerations = append(tolerations, gke.PlacementOn(pool).Tolerations...)
		}
	}
	return tolerations
}

// output returns the output that describes PEDL, without secrets.
func (p *pedlInstallation) output() pulumi.Map {
	output := pulumi.Map{
		"namespace": pulumi.String(pedl.NamespaceName),
		"master":    pulumi.String(p.master.URL),
		"database":  p.databaseOutput(),
	}
	if p.support != nil {
		output["supportCheck"] = p.support.Result
	}
	return output
}

// databaseOutput says where the data is, and what becomes of it.
func (p *pedlInstallation) databaseOutput() pulumi.Map {
	postgreSQL := p.config.Postgres
	switch {
	case postgreSQL.External != nil:
		return pulumi.Map{"host": pulumi.String(postgreSQL.External.Host), "onDestroy": pulumi.String("kept")}
	case p.volume != nil:
		return volumeOutput(p.volume)
	case !postgreSQL.Persistence.Enabled:
		return pulumi.Map{"onDestroy": pulumi.String("lost with its pod")}
	default:
		return pulumi.Map{
			"claim":     pulumi.String(pedl.ClaimName(postgreSQL.Persistence)),
			"onDestroy": pulumi.String("kept, in the namespace " + pedl.NamespaceName),
		}
	}
}
