package config

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

// checkPEDL checks PEDL, and that its pods fit the nodes of their pools.
func (s *Stack) checkPEDL(p *input.Problems) {
	path, pedl := field.NewPath(pedlKey), s.PEDL
	if pedl == nil {
		return
	}
	const example = "determinedai/pedl-master:0.9.0"
	checkImage(p, path.Child("masterImage"), pedl.MasterImage, example)
	checkImage(p, path.Child("agentImage"), pedl.AgentImage, example)
	service := pedl.Service
	// The annotation of GKE, and its name in older releases.
	internal := slices.Contains([]string{service.Annotations["networking.gke.io/load-balancer-type"],
		service.Annotations["cloud.google.com/load-balancer-type"]}, "Internal")
	if service.Type == corev1.ServiceTypeLoadBalancer && len(service.LoadBalancerSourceRanges) == 0 && !internal {
		p.Required(path.Child("service", "loadBalancerSourceRanges"), "write the networks of PEDL's users, like [203.0.113.0/24], "+
			"because a load balancer admits everyone by default, and anyone who can reach the master can run containers on the "+
			"nodes of its agents; or give the service the annotation networking.gke.io/load-balancer-type: Internal")
	}
	for i, cidr := range service.LoadBalancerSourceRanges {
		if prefix, err := netip.ParsePrefix(strings.TrimSpace(cidr)); err == nil && prefix.Bits() < 8 {
			p.Invalid(path.Child("service", "loadBalancerSourceRanges").Index(i), cidr, "opens the master to the world, and anyone "+
				"who can reach it can run containers on the nodes of its agents; write the networks of PEDL's users, /8 or smaller")
		}
	}
	pedl.Postgres.check(p, path.Child("postgresql"), pedl.NodePool, s)
	s.checkAssignment(p, path.Child("resources"), path.Child("nodePool"), "the master of PEDL", pedl.NodePool, pedl.Resources,
		append(s.poolNames(), s.SystemPoolName()), false)
	s.checkAgents(p, path.Child("agent"), pedl.Agent)
	if pedl.SupportCheck != nil {
		at := path.Child("supportCheck", "nodePool")
		if pool, ok := s.checkPool(p, at, pedl.SupportCheck.NodePool, s.poolNames(), false); ok && pool.GPU == nil {
			p.Invalid(at, pool.Name, "has no GPUs, which the check requires; choose a GPU pool")
		}
	}
}

// checkAgents checks the agents. It refuses pools whose nodes come and go: Kubernetes does not see trials.
func (s *Stack) checkAgents(p *input.Problems, path *field.Path, agent PEDLAgent) {
	checkEnvVars(p, path.Child("env"), agent.Env)
	checkResources(p, path.Child("resources"), "an agent of PEDL", agent.Resources)
	pools := path.Child("nodePools")
	if s.existing() {
		if len(agent.NodePools) > 0 {
			p.Forbidden(pools, "the stack does not change the node pools of an existing cluster; remove it, and label the nodes with "+
				"kubectl label nodes -l %s=POOL %s=%s", gcp.LabelNodePool, PEDLAgentTaint.Key, PEDLAgentTaint.Value)
		}
		return
	}
	for i, name := range agent.NodePools {
		pool, ok := s.checkPool(p, pools.Index(i), name, s.poolNames(), false)
		if !ok {
			continue
		}
		if use := s.poolUses()[name]; use.roles || use.others {
			p.Invalid(pools.Index(i), name, "is also the nodePool of other pods of the stack, but agents expect to have its nodes to "+
				"themselves; choose another pool here, or there")
		}
		if pool.Autoscaling != nil {
			p.Invalid(pools.Index(i), name, "has autoscaling, which does not know about PEDL's trials: it adds no nodes for them, "+
				"and removes nodes that run them; set nodes instead")
		}
	}
	for name, use := range s.poolUses() {
		if pool, ok := s.Pool(name); ok && s.PEDL.hostsAgents(pool) && !slices.Contains(agent.NodePools, name) && (use.roles || use.others) {
			p.Invalid(s.PoolPath(name).Child("labels"), name, "has the label of PEDL's agents, which expect to have its nodes to "+
				"themselves, and is the nodePool of other pods; remove the label, or choose another pool for them")
		}
	}
}

// warnOfPEDL warns of passwords that cross the internet in plain text, and of a database that may be lost.
func (s *Stack) warnOfPEDL(p *input.Problems) {
	if s.PEDL == nil {
		return
	}
	ingress, annotations := s.PEDL.Ingress, s.PEDL.Ingress.Annotations
	if ingress.Enabled && len(ingress.TLS) == 0 && annotations["kubernetes.io/ingress.class"] != "gce-internal" &&
		annotations["ingress.gcp.kubernetes.io/pre-shared-cert"]+annotations["networking.gke.io/managed-certificates"] == "" {
		p.Warn(field.NewPath(pedlKey, "ingress", "tls"), "is empty, so passwords of PEDL's users cross the internet over plain "+
			"HTTP; write the Secret of a certificate, or the annotation kubernetes.io/ingress.class: gce-internal")
	}
	if s.PEDL.Postgres.External != nil {
		return
	}
	at, persistence := field.NewPath(pedlKey, "postgresql", "persistence"), s.PEDL.Postgres.Persistence
	if !persistence.Enabled {
		p.Warn(at.Child("enabled"), "the database is lost when its pod is deleted")
	}
	if class := persistence.StorageClass; class != "" {
		p.Warn(at.Child("storageClass"), "the storage class %s determines what happens to the database when its claim is deleted. "+
			"`pulumi destroy` keeps the claim, but deleting the cluster deletes it", class)
	}
}

// labelAgentPools gives the pools of PEDL's agents the label that agents select nodes by,
// and the taint that keeps other pods off. It leaves existing pools alone.
func (s *Stack) labelAgentPools() {
	if s.PEDL == nil || s.existing() {
		return
	}
	taint := Taint{Key: PEDLAgentTaint.Key, Value: PEDLAgentTaint.Value, Effect: PEDLAgentTaint.Effect}
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		if !slices.Contains(s.PEDL.Agent.NodePools, pool.Name) {
			continue
		}
		if pool.Labels == nil {
			pool.Labels = map[string]string{}
		}
		pool.Labels[taint.Key] = taint.Value
		if !slices.Contains(pool.Taints, taint) {
			pool.Taints = append(pool.Taints, taint)
		}
	}
}

// databaseName names the database in messages.
const databaseName = "the database of PEDL"

// check checks the database, which runs on the node pool of the master.
func (d *PostgreSQL) check(p *input.Problems, path *field.Path, nodePool string, stack *Stack) {
	if d.External != nil {
		input.OnlyFields(p, path, *d, "of an external database", "external")
		return
	}
	checkImage(p, path.Child("image"), d.Image.Reference(), "registry, repository, and tag of "+ImagePostgreSQL.Reference())
	checkResources(p, path.Child("resources"), databaseName, d.Resources)
	if d.Password == "" {
		input.Password(p, path.Child("postgresqlPassword"), d.Password)
	}
	for name, value := range d.ExtendedConfig {
		if durability.MatchString(name) && off.MatchString(string(value)) {
			p.Invalid(path.Child("postgresqlExtendedConfig").Key(name), value, "may destroy the database when its node stops; "+
				"remove it; if commits are too slow, synchronousCommit: off loses at most the last ones")
		}
	}
	d.Persistence.check(p, path.Child("persistence"), nodePool, stack)
}

var (
	// durability matches settings of PostgreSQL without which a crash may destroy the database (PostgreSQL, "Write Ahead Log").
	durability = regexp.MustCompile(`(?i)^(fsync|full_?page_?writes)$`)
	// off matches the values that PostgreSQL takes for false.
	off = regexp.MustCompile(`(?i)^(of|f|n|0)`)
)

// check checks that the data has exactly one source, and that the database can use a volume of the stack.
func (d *Persistence) check(p *input.Problems, at *field.Path, nodePool string, stack *Stack) {
	database, sources := d.volume(), d.Written()
	if d.StorageClass != "" {
		sources = append([]string{"storageClass"}, sources...)
	}
	if d.ExistingClaim != "" {
		sources = append([]string{"existingClaim"}, sources...)
	}
	database.checkAccessMode(p, at.Child("accessMode"), d.AccessMode)
	switch {
	case !d.Enabled && len(sources) > 0:
		p.Forbidden(at.Child(sources[0]), "enabled is false; write enabled: true, or remove it")
	case !d.Enabled || d.ExistingClaim != "" && len(sources) == 1:
	case len(sources) == 0:
		p.Required(at.Child("storageClass"),
			"required on an existing cluster: write storageClass, existingClaim, or a source like nfs or persistentDisk")
	case len(sources) > 1:
		p.Forbidden(at.Child(sources[1]), "%s is already set; remove one of them", sources[0])
	default:
		input.Form(p, at.Child("size"), "bytes", d.Size)
		if d.StorageClass == "" {
			database.checkSource(p, at, &stack.Site)
			checkDatabaseVolume(p, at, &database, nodePool, stack)
		}
	}
}

// checkDatabaseVolume checks that the pod of PostgreSQL, on a node of its pool, can use a volume.
func checkDatabaseVolume(p *input.Problems, path *field.Path, database *Volume, nodePool string, stack *Stack) {
	if database.MountedBySidecar() {
		p.Invalid(path.Child("gcsFuse"), database.GCSFuse.Bucket, "cannot hold a database, because a bucket has no locks; use persistentDisk")
	}
	for i, other := range stack.Storage {
		at := field.NewPath(storageKey).Index(i)
		if other.Name == database.Name {
			p.Invalid(at.Child("name"), other.Name, "is the name of the volume of PEDL's database; choose another")
		}
		if identity := database.Identity(); identity != "" && identity == other.Identity() {
			p.Duplicate(path, identity, "is already the storage of %s; give the database its own storage", at)
		}
	}
	if pool, ok := stack.Pool(nodePool); ok {
		database.checkUsers(p, path, volumeUsers{Pools: []Pool{pool}, OnePod: true})
	}
}
