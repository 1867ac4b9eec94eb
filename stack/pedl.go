package stack

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/infra/gke"
	"persia/infra/storage"
	"persia/kube"
	"persia/workload/pedl"
)

// newPEDL registers PEDL, if the stack has it, and what runs on GPUs after their driver.
func (d *deployment) newPEDL(driver []pulumi.CustomResource) {
	cfg := d.cfg
	if cfg.PEDL == nil {
		return
	}
	args := pedl.Args{
		PEDL:        *cfg.PEDL,
		Images:      cfg.Images,
		Placement:   placement(cfg, cfg.PEDL.NodePool),
		Tolerations: agentTolerations(cfg),
	}
	if keepsDatabaseClaim(cfg) {
		args.Adopter = d.cluster.Adopter
	}
	namespaces := pedl.NewNamespaces(d.in, "pedl", args)
	database, needs := d.newDatabase(args, namespaces)
	master := pedl.NewMaster(d.in, "pedl-master", args, needs)
	pedl.NewAgents(d.in, "pedl-agent", args, master.ClusterIP, append(slices.Clip(driver), master.Server))
	d.pedl = pulumi.Map{
		"namespace": pulumi.String(pedl.NamespaceName),
		"master":    pulumi.String(master.URL),
		"database":  database,
	}
	if check := cfg.PEDL.SupportCheck; check != nil {
		d.pedl["supportCheck"] = pedl.NewSupportCheck(d.in, "test-pedl-support", cfg.Images, placement(cfg, check.NodePool),
			slices.Concat(namespaces, driver))
	}
}

// newDatabase registers the volume and the database, unless the database is elsewhere. It returns the output that says
// where the data is and what becomes of it, and what comes before the master.
func (d *deployment) newDatabase(args pedl.Args, needs []pulumi.CustomResource) (pulumi.Map, []pulumi.CustomResource) {
	postgreSQL := args.PEDL.Postgres
	if external := postgreSQL.External; external != nil {
		return pulumi.Map{"host": pulumi.String(external.Host), "onDestroy": pulumi.String("kept")}, needs
	}
	output := pulumi.Map{
		"claim":     pulumi.String(pedl.ClaimName(postgreSQL.Persistence)),
		"onDestroy": pulumi.String("kept, in the namespace " + pedl.NamespaceName),
	}
	if volume, ok := d.cfg.PEDLDatabase(); ok {
		stored := d.data.volumeArgs(volume)
		stored.Namespace, stored.Contents, stored.Needs = pedl.NamespaceName, "databases", needs
		stored.Annotations = postgreSQL.Persistence.Annotations
		registered := storage.NewVolume(d.in, volume.Name, stored)
		output, needs = kube.Outputs(registered), kube.Needs(registered.Claim)
	} else if !postgreSQL.Persistence.Enabled {
		output = pulumi.Map{"onDestroy": pulumi.String("lost with its pod")}
	}
	return output, kube.Needs(pedl.NewDatabase(d.in, "pedl-postgresql", args, needs))
}

// keepsDatabaseClaim reports whether the database of PEDL is on a claim that must not go with its namespace.
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
