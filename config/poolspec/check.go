package poolspec

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/gcp"
)

// SystemName is the name of the system pool of a cluster that the stack creates. Pools of the
// stack file cannot have this name.
const SystemName = "system"

// OwnLabel is a label of every node with the name of its pool. It lets the user remove the
// last label of a pool: the provider omits an empty list of labels, and GKE refuses an update
// that names no field.
const OwnLabel = "persia.com/node-pool"

// longestName is the limit of GKE (GKE API, NodePool).
const longestName = 40

// Check checks the resolved node pools of a stack file. The path is of the list.
func Check(p *check.Problems, path *field.Path, pools []Pool, context Context, machines Machines) {
	c := &checker{p, context}
	for i, pool := range pools {
		c.pool(path.Index(i), pool, machines)
	}
	check.UniqueField(p, path, "name", pools, func(pool Pool) string { return pool.Name }, "is already used by nodePools[%d]; give each pool a different name")
}

// checker checks the node pools of a cluster.
type checker struct {
	*check.Problems
	context Context
}

func (c *checker) pool(path *field.Path, pool Pool, machines Machines) {
	c.Name(path.Child("name"), pool.Name, validation.IsDNS1035Label)
	c.AtMost(longestName, path.Child("name"), pool.Name, "the limit of GKE")
	m, known := machines.Check(c.Problems, path.Child("machineType"), pool.MachineType)
	c.poolSize(path, pool, m)
	if known {
		checkGPU(c.Problems, path.Child("gpu"), pool, m)
	}
	if pool.SpareNodes < 0 {
		c.Invalid(path.Child("spareNodes"), pool.SpareNodes, "must not be negative; write the number of nodes that may be lost at the same time")
	}
	checkMaxPods(c.Problems, path.Child("maxPodsPerNode"), pool.MaxPodsPerNode)
	c.taints(path.Child("taints"), pool)
	if c.context.Existing {
		return
	}
	switch name := path.Child("name"); {
	case pool.Name == SystemName:
		c.Invalid(name, pool.Name, "is the name of the cluster's system pool; choose another")
	case pool.Name == "default-pool":
		c.Invalid(name, pool.Name, "is the name of the pool that GKE creates with each cluster, which the stack removes; choose another")
	case strings.HasPrefix(pool.Name, "nap-"):
		c.Invalid(name, pool.Name, "begins with nap-, which is reserved for the pools of GKE's node auto-provisioning; choose another")
	}
	c.zones(path.Child("zones"), pool, m)
	c.gpuZones(path.Child("machineType"), pool)
	checkStrategy(c.Problems, path.Child("gpu", "sharing", "strategy"), pool.GPU)
	checkLabels(c.Problems, path.Child("labels"), pool.Labels)
	c.provisioning(path, pool)
	checkUpgrade(c.Problems, path.Child("upgrade"), pool.Upgrade)
	if u := pool.Upgrade; u.Strategy == blueGreen && u.BatchNodes > pool.MostNodes() {
		c.Warn(path.Child("upgrade", "batchNodes"), "%d is more than the %d nodes of the pool, so an upgrade drains all of them at once; write fewer", u.BatchNodes, pool.MostNodes())
	}
	if u := pool.Upgrade; u.Strategy == surge && u.MaxUnavailable != nil && *u.MaxUnavailable >= pool.MostNodes() && pool.MostNodes() > 1 {
		c.Warn(path.Child("upgrade", "maxUnavailable"), "%d takes away all %d nodes of the pool at once in an upgrade; write fewer", *u.MaxUnavailable, pool.MostNodes())
	}
	c.fastSocket(path.Child("fastSocket"), pool)
	if known {
		c.ofSeries(path, pool, m)
	}
}

func (c *checker) poolSize(path *field.Path, pool Pool, m gcp.Machine) {
	switch {
	case pool.Nodes != nil && pool.Autoscaling != nil:
		c.Forbidden(path.Child("autoscaling"), "cannot be combined with nodes, which is %d; write either nodes or autoscaling", *pool.Nodes)
	case pool.Nodes == nil && pool.Autoscaling == nil:
		c.Required(path.Child("nodes"), "write the number of nodes, or autoscaling with minNodes and maxNodes")
	case pool.Nodes != nil && *pool.Nodes < 0:
		c.Invalid(path.Child("nodes"), *pool.Nodes, "must be at least 1")
	case pool.Nodes != nil && *pool.Nodes == 0:
		c.Invalid(path.Child("nodes"), 0, "must be at least 1; remove the pool instead, or write autoscaling with minNodes 0")
	case pool.Nodes != nil:
		c.spread(path.Child("nodes"), pool, m)
	default:
		c.autoscaling(path.Child("autoscaling"), *pool.Autoscaling)
	}
}

// lacksZones reports whether a pool has no zones but needs them.
func (c *checker) lacksZones(pool Pool, m gcp.Machine) bool {
	return len(pool.Zones) == 0 && !c.context.Unknown && m.Type != "" && !inEveryZone(pool, m)
}

// spread checks a fixed number of nodes against the zones, if they are known.
func (c *checker) spread(path *field.Path, pool Pool, m gcp.Machine) {
	if c.context.Existing || c.context.Unknown || c.lacksZones(pool, m) {
		checkMost(c.Problems, path, *pool.Nodes)
		return
	}
	CheckSpread(c.Problems, path, *pool.Nodes, pool.ZoneCount())
}

func (c *checker) autoscaling(path *field.Path, a Autoscaling) {
	checkMost(c.Problems, path.Child("maxNodes"), a.MaxNodes)
	if a.MinNodes < 0 {
		c.Invalid(path.Child("minNodes"), a.MinNodes, "must be at least 0")
	}
	switch {
	case a.MaxNodes < 1:
		c.Invalid(path.Child("maxNodes"), a.MaxNodes, "must be at least 1; remove the pool instead")
	case a.MaxNodes < a.MinNodes:
		c.Invalid(path.Child("maxNodes"), a.MaxNodes, "must be at least minNodes, which is %d", a.MinNodes)
	}
}

// zones checks the zones of the nodes. If there are none, GKE chooses three of the region,
// which may not have the machine type.
func (c *checker) zones(path *field.Path, pool Pool, m gcp.Machine) {
	switch {
	case !c.Decoded(path):
	case len(pool.Zones) > 0 && !slices.Equal(pool.Zones, c.context.Zones):
		check.Zones(c.Problems, path, c.context.Region, pool.Zones)
	case c.lacksZones(pool, m):
		c.Required(path, "write the zones that have %s, here or in the zones of the cluster, because GKE would otherwise choose three zones of the region, and not all of them have it; `gcloud compute machine-types list --filter=name=%s` lists them", m.Type, m.Type)
	}
}

// gpuZones warns of zones that may not have the GPUs of a pool.
func (c *checker) gpuZones(path *field.Path, pool Pool) {
	if pool.GPU == nil {
		return
	}
	have, known := gcp.GPUZones(pool.GPU.Type, c.context.Region)
	lack := slices.DeleteFunc(slices.Clone(pool.Zones), func(zone string) bool { return slices.Contains(have, zone) || gcp.IsAIZone(zone) })
	if !known || len(lack) == 0 || len(gcp.Zones(c.context.Region)) == 0 {
		return
	}
	where := "write " + check.Or(have) + " in zones of the pool"
	if len(have) == 0 {
		where = "choose another region, or other GPUs"
	}
	c.Warn(path, "%s is not in %s, as far as the program knows; %s. Its table may be old: `gcloud compute accelerator-types list --filter=name=%s` lists the zones", pool.GPU.Type, check.And(lack), where, pool.GPU.Type)
}

// checkMaxPods checks the maximum number of pods of a node (GKE, "Configure maximum Pods per
// node").
func checkMaxPods(p *check.Problems, path *field.Path, pods int) {
	check.Range(p, path, pods, 8, 256, "; omit it for 110")
}

func checkLabels(p *check.Problems, path *field.Path, labels map[string]string) {
	check.Labels(p, path, labels)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if key == OwnLabel {
			p.Invalid(path.Key(key), key, "is set on every node by the program; remove it")
		}
		if domain := ReservedDomain(key); domain != "" {
			p.Invalid(path.Key(key), key, "is in the domain %s, which is reserved for GKE; use your own prefix, or none", domain)
		}
	}
}

// ReservedDomain returns the domain of Kubernetes or Google in the prefix of a label, or "".
func ReservedDomain(label string) string {
	prefix, _, ok := strings.Cut(label, "/")
	if !ok {
		return ""
	}
	for _, domain := range []string{"kubernetes.io", "k8s.io", "google.com"} {
		if prefix == domain || strings.HasSuffix(prefix, "."+domain) {
			return domain
		}
	}
	return ""
}

func (c *checker) taints(path *field.Path, pool Pool) {
	for i, t := range pool.Taints {
		at := path.Index(i)
		c.Name(at.Child("key"), t.Key, validation.IsQualifiedName)
		c.ownTaint(at.Child("key"), t.Key, pool)
		c.InvalidFor(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))
	}
	check.Unique(pool.Taints, func(t Taint) Taint { return Taint{Key: t.Key, Effect: t.Effect} }, func(i, first int, t Taint) {
		c.Duplicate(path.Index(i), t.Key+":"+string(t.Effect), "repeats the key and effect of taints[%d]; remove one of them", first)
	})
}

// ownTaint refuses taints that GKE or the program sets.
func (c *checker) ownTaint(path *field.Path, key string, pool Pool) {
	switch {
	case key == gcp.TaintGPU:
		// GKE would accept it on a GPU pool: cluster-toolkit declares it itself
		// (modules/compute/gke-node-pool/main.tf, concat(var.taints, local.gpu_taint)). Here the
		// pools' order has GKE set it.
		c.Invalid(path, key, "is set by GKE on every GPU pool, and would keep pods off other pools; remove the taint")
	case key == gcp.TaintSpot && pool.Spot:
		c.Invalid(path, key, "is set on every spot pool; remove the taint")
	case key == gcp.TaintQueued && pool.QueuedProvisioning:
		c.Invalid(path, key, "is set by GKE on pools with queuedProvisioning; remove the taint")
	case !c.context.Existing && key != gcp.TaintSpot && ReservedDomain(key) != "":
		c.Invalid(path, key, "is in the domain %s, which is reserved for Kubernetes and GKE; use your own prefix, or none", ReservedDomain(key))
	}
}
