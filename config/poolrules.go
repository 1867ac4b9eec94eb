package config

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

// resolvePools fills in the pools. Their upgrades depend on what runs on them.
func (s *Stack) resolvePools() {
	s.resolveLists()
	uses := s.poolUses()
	resolve := func(p *Pool) { p.resolve(&s.Site, s.MachineTypes, s.NVIDIADriver, uses[p.Name]) }
	if pool := s.Cluster.SystemPool; !s.existing() {
		s.system = Pool{Name: SystemPoolName, MachineType: pool.MachineType, Nodes: &pool.Nodes}
		input.Defaults(&s.system)
		resolve(&s.system)
	}
	for i := range s.NodePools {
		resolve(&s.NodePools[i])
	}
}

func (s *Stack) poolUses() map[string]*poolUse {
	uses := map[string]*poolUse{}
	on := func(nodePool string, roles, others, gpus bool) {
		for _, pool := range poolsIn(nodePool) {
			if uses[pool] == nil {
				uses[pool] = &poolUse{}
			}
			use := uses[pool]
			use.roles, use.others, use.gpus = use.roles || roles, use.others || others, use.gpus || gpus
			use.as = append(use.as, nodePool)
		}
	}
	on(s.SystemPoolName(), false, true, false)
	for _, cluster := range s.NATSClusters() {
		on(cluster.NodePool, false, true, false)
	}
	if s.PEDL != nil {
		on(s.PEDL.NodePool, false, true, false)
		for _, pool := range s.PEDL.Agent.NodePools {
			on(pool, false, false, true)
		}
		if check := s.PEDL.SupportCheck; check != nil {
			on(check.NodePool, false, false, true)
		}
	}
	for i := range s.Jobs {
		for _, role := range s.Jobs[i].Roles() {
			on(role.NodePool, true, false, GPUs(role.Resources) > 0)
		}
	}
	return uses
}

// checkPools checks the resolved node pools of the stack file.
func (s *Stack) checkPools(p *input.Problems) {
	path := field.NewPath(nodePoolsKey)
	for i, pool := range s.NodePools {
		s.checkNodePool(p, path.Index(i), pool)
	}
	input.Unique(p, path, "name", s.poolNames())
}

// longestPoolName is the limit of GKE (GKE API, NodePool).
const longestPoolName = 40

func (s *Stack) checkNodePool(p *input.Problems, path *field.Path, pool Pool) {
	p.AtMost(longestPoolName, path.Child("name"), pool.Name, "the limit of GKE")
	m, known := s.MachineTypes.find(p, path.Child("machineType"), pool.MachineType)
	s.checkPoolSize(p, path, pool, m)
	if known {
		checkGPU(p, path.Child("gpu"), pool, m)
	}
	s.checkTaints(p, path.Child("taints"), pool)
	if s.existing() {
		return
	}
	s.checkPoolZones(p, path, pool, m)
	checkPoolLabels(p, path.Child("labels"), pool.Labels)
	checkUpgrade(p, path.Child("upgrade"), pool.Upgrade)
	for _, rule := range s.poolRules(pool) {
		if rule.broken {
			at := path
			for name := range strings.SplitSeq(rule.field, ".") {
				at = at.Child(name)
			}
			p.Invalid(at, rule.value, "%s", rule.say)
		}
	}
	if known {
		checkSeries(p, path, pool, m)
	}
}

const (
	// mostNodes is the node limit of a cluster (GKE, "Quotas and limits").
	mostNodes       = 15000
	mostPodsPerNode = 256
)

func (s *Stack) checkPoolSize(p *input.Problems, path *field.Path, pool Pool, m gcp.Machine) {
	switch a := pool.Autoscaling; {
	case pool.Nodes != nil && a != nil:
		p.Forbidden(path.Child("autoscaling"), "cannot be combined with nodes, which is %d; remove one of them", *pool.Nodes)
	case pool.Nodes == nil && a == nil:
		p.Required(path.Child("nodes"), "write the number of nodes, or autoscaling with minNodes and maxNodes")
	case pool.Nodes != nil && (*pool.Nodes < 1 || *pool.Nodes > mostNodes):
		p.Try(p.Invalid(path.Child("nodes"), *pool.Nodes, "must be from 1 to %d, the limit of a cluster; to have none at times, "+
			"write autoscaling with minNodes 0", mostNodes), false, input.Edits{path: nil}, "remove the pool")
	case pool.Nodes != nil && !s.existing() && p.Decoded(field.NewPath(clusterKey)) && !s.lacksZones(p, pool, m):
		checkSpread(p, path.Child("nodes"), pool)
	case a != nil && a.MaxNodes > 0 && a.MaxNodes < a.MinNodes:
		p.Invalid(path.Child("autoscaling", "maxNodes"), a.MaxNodes, "must be at least %d, as minNodes", a.MinNodes)
	}
}

// checkSpread checks that a fixed number of nodes is a multiple of the zones: GKE sets a number of nodes per zone.
func checkSpread(p *input.Problems, path *field.Path, pool Pool) {
	if nodes := *pool.Nodes; pool.WholeZones(nodes) != nodes {
		p.Instead(path, nodes, pool.WholeZones(nodes),
			"must be a multiple of the %d zones, to be spread evenly; use fewer zones", pool.ZoneCount())
	}
}

// lacksZones reports whether a pool has no zones but needs them, because not every zone of every
// region has its machines (Compute Engine, "Available regions and zones").
func (s *Stack) lacksZones(p *input.Problems, pool Pool, m gcp.Machine) bool {
	everywhere := pool.GPU == nil && slices.Contains([]string{"e2", "n1", "n2"}, m.Family())
	return len(pool.Zones) == 0 && p.Decoded(field.NewPath(clusterKey)) && m.Type != "" && !everywhere
}

// checkPoolZones checks the zones of the nodes. If there are none, GKE chooses three of the region,
// which may not have the machine type.
func (s *Stack) checkPoolZones(p *input.Problems, path *field.Path, pool Pool, m gcp.Machine) {
	switch zones := path.Child("zones"); {
	case !p.Decoded(zones):
	case len(pool.Zones) > 0 && !slices.Equal(pool.Zones, s.Cluster.Zones):
		input.Zones(p, zones, s.Cluster.Region, pool.Zones)
	case s.lacksZones(p, pool, m):
		p.Required(zones, "write the zones that have %[1]s, here or in the zones of the cluster, because GKE would otherwise choose "+
			"three zones of the region, and not all of them have it; "+
			"`gcloud compute machine-types list --filter=name=%[1]s` lists them", m.Type)
	}
}

func checkPoolLabels(p *input.Problems, path *field.Path, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if key == PoolLabel || key == PoolsLabel {
			p.Invalid(path.Key(key), key, "is set on nodes by the program; remove it")
		}
		checkDomain(p, path.Key(key), key)
	}
}

// checkDomain refuses domains of Kubernetes or Google in the prefix of a label or a taint.
func checkDomain(p *input.Problems, at *field.Path, key string) {
	prefix, _, prefixed := strings.Cut(key, "/")
	for _, domain := range []string{"kubernetes.io", "k8s.io", "google.com"} {
		if prefixed && (prefix == domain || strings.HasSuffix(prefix, "."+domain)) {
			p.Invalid(at, key, "is in the domain %s, which is reserved for Kubernetes and GKE; use your own prefix, or none", domain)
		}
	}
}

func (s *Stack) checkTaints(p *input.Problems, path *field.Path, pool Pool) {
	for i, t := range pool.Taints {
		at := path.Index(i).Child("key")
		switch {
		case t.Key == gcp.TaintGPU || t.Key == gcp.TaintSpot && pool.Spot || t.Key == gcp.TaintQueued && pool.QueuedProvisioning:
			// GKE would accept nvidia.com/gpu on a GPU pool: cluster-toolkit declares it itself
			// (modules/compute/gke-node-pool/main.tf, concat(var.taints, local.gpu_taint)). Here the
			// pools' order has GKE set it.
			p.Invalid(at, t.Key, "is set where it is needed, and would keep pods off other pools; remove the taint")
		case !s.existing() && t.Key != gcp.TaintSpot:
			checkDomain(p, at, t.Key)
		}
	}
	input.Unique(p, path, "", input.Words(pool.Taints, func(t Taint) string { return t.Key + ":" + string(t.Effect) }))
}

// reservationForm matches the name of a reservation, or its path in another project, with an
// optional block (cluster-toolkit, modules/compute/gke-node-pool, specific_reservations).
var reservationForm = regexp.MustCompile(`^(projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/reservations/)?` +
	`[a-z]([a-z0-9-]{0,61}[a-z0-9])?(/reservationBlocks/[a-z0-9-]{1,63})?$`)

// poolRule is a rule over several fields of a pool.
type poolRule struct {
	broken bool
	field  string
	value  any
	say    string
}

// poolRules returns the rules about names, and about spot, queued provisioning, compact placement, reservations and
// Fast Socket, most of which exclude each other (GKE, "Run a large-scale workload with flex-start with queued
// provisioning", "Define compact placement for GKE nodes", "Improve workload efficiency using NCCL Fast Socket").
func (s *Stack) poolRules(pool Pool) []poolRule {
	queued, compact, reserved := pool.QueuedProvisioning, pool.CompactPlacement, pool.Reservation != ""
	scaling := Autoscaling{}
	if pool.Autoscaling != nil {
		scaling = *pool.Autoscaling
	}
	return []poolRule{
		{pool.Name == SystemPoolName || pool.Name == "default-pool", "name", pool.Name,
			"is the name of a pool that the program or GKE creates itself; choose another"},
		{pool.Spot && queued, "spot", true,
			"cannot be combined with queuedProvisioning, whose nodes are never preempted; remove one of them"},
		{pool.Spot && !queued && reserved, "spot", true,
			"cannot be combined with reservation, because reservations have no spot machines; remove one of them"},
		{queued && pool.Nodes != nil, "nodes", pool.MostNodes(),
			"cannot be combined with queuedProvisioning, which creates nodes on request; use autoscaling with minNodes 0 instead"},
		{queued && scaling.MinNodes > 0, "autoscaling.minNodes", scaling.MinNodes,
			"must be 0 with queuedProvisioning, which creates nodes on request"},
		{queued && scaling.LocationPolicy == "BALANCED", "autoscaling.locationPolicy", scaling.LocationPolicy,
			"cannot be combined with queuedProvisioning, which creates nodes where they are available; write ANY, or remove it"},
		{queued && reserved, "reservation", pool.Reservation,
			"cannot be combined with queuedProvisioning, which does not use reserved machines; remove one of them"},
		{queued && compact, "compactPlacement", true, "cannot be combined with queuedProvisioning; remove one of them"},
		{compact && len(pool.Zones) != 1 && s.Cluster.Region != "", "compactPlacement", true,
			"requires a single zone; write one in zones of the pool, or remove it"},
		{reserved && !queued && len(pool.Zones) > 1, "reservation", pool.Reservation, fmt.Sprintf("is of one zone, and the pool "+
			"has nodes in %s; write the zone of the reservation in zones of the pool, and another pool for each other zone",
			input.And(pool.Zones))},
		{compact && reserved, "compactPlacement", true, "cannot be combined with reservation: the reservation decides where its " +
			"machines are, and gives none to a pool with a placement policy of its own; remove it"},
		{reserved && !reservationForm.MatchString(pool.Reservation), "reservation", pool.Reservation, "must be the name of a " +
			"reservation, like nn-workers, or projects/other-project/reservations/nn-workers; " +
			"append /reservationBlocks/B for one of its blocks"},
		{pool.FastSocket && (pool.GPU == nil || pool.ImageType == gcp.ImageUbuntu), "fastSocket", true, "is only for GPU pools " +
			"with the image " + gcp.ImageCOS + "; remove it, or choose an NVIDIA driver installer for that image"},
	}
}

// The sizes of GKE's node images: 12 GB since 1.32 (GoogleCloudPlatform/magic-modules#13788),
// and 15 GB with GPUs (#2505).
const leastDiskGB, leastGPUDiskGB = 12, 15

// mostDiskGB is the largest boot disk (GKE, "Configure a custom boot disk").
const mostDiskGB = 65536

// checkSeries checks the fields that depend on the series of a pool's machines. For series that are
// not in the catalogue, any type of disk and number of local SSDs may be right.
func checkSeries(p *input.Problems, path *field.Path, pool Pool, m gcp.Machine) {
	diskType, size := path.Child("disk", "type"), path.Child("disk", "sizeGb")
	switch disks := m.BootDisks(); {
	case pool.Disk.Type == "":
		p.Required(diskType, "write one of %s: the series of %s is not in the catalogue, and might not support all of them",
			input.Or(gcp.DiskTypes), m.Type)
	case slices.Contains(gcp.DiskTypes, pool.Disk.Type) && len(disks) > 0 && !slices.Contains(disks, pool.Disk.Type):
		p.Invalid(diskType, pool.Disk.Type, "is not supported by %s; write %s", m.Type, input.Or(disks))
	}
	least := leastDiskGB
	if pool.GPU != nil {
		least = leastGPUDiskGB
	}
	if pool.Disk.SizeGB < least || pool.Disk.SizeGB > mostDiskGB {
		p.Invalid(size, pool.Disk.SizeGB, "must be from %d, the size of the node image, to %d", least, mostDiskGB)
	}
	at := path.Child("localSsdCount")
	switch counts, known := m.LocalSSDs(); {
	case pool.LocalSSDs < 0: // reported by its tag
	case pool.LocalSSDs == 0 && strings.HasSuffix(m.Type, "-lssd"):
		p.Required(at, "write the number of local SSDs that %s includes; without it, every update would replace the pool", m.Type)
	case pool.LocalSSDs == 0 || !known || slices.Contains(counts, pool.LocalSSDs):
	case len(counts) == 0:
		p.Invalid(at, pool.LocalSSDs, "is not supported by %s; remove it, or choose another machine type", m.Type)
	default:
		p.Invalid(at, pool.LocalSSDs, "%s supports %s; write one of these, or choose another machine type",
			m.Type, input.Or(input.Words(counts, strconv.Itoa)))
	}
	if pool.Spot && !m.HasSpot() {
		p.Invalid(path.Child("spot"), true, "is not available for %s; remove it, or choose a machine type of another series", m.Type)
	}
	if pool.CompactPlacement && !m.TakesCompactPlacement() {
		p.Invalid(path.Child("compactPlacement"), true,
			"is not supported by the series of %s; remove it, or choose another series, like c2", m.Type)
	}
	if m.NeedsGVNIC() && pool.ImageType != gcp.ImageCOS {
		p.Invalid(path.Child("imageType"), pool.ImageType, "is not supported by %[1]s, whose only network interface is gVNIC, which "+
			"GKE offers only on %[2]s; write %[2]s (for a GPU pool, with the NVIDIA driver installer %[3]s), or choose another machine type",
			m.Type, gcp.ImageCOS, InstallerManaged)
	}
}

func checkUpgrade(p *input.Problems, path *field.Path, u Upgrade) {
	surge, unavailable := *u.MaxSurge, *u.MaxUnavailable
	if both := surge + unavailable; min(surge, unavailable) >= 0 && (both == 0 || both > mostUpgradedAtOnce) {
		p.Invalid(path.Child("maxUnavailable"), unavailable, "makes %d together with maxSurge, but GKE upgrades from 1 to %d nodes "+
			"at a time; write a number in between", both, mostUpgradedAtOnce)
	}
}

// keepsOff returns the key of the taint that keeps pods without tolerations off a pool, or
// "". It leaves out the GPU taint: GKE adds the toleration to pods that request GPUs.
func keepsOff(pool Pool) string {
	if pool.Spot {
		return gcp.TaintSpot
	}
	for _, taint := range pool.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule {
			return taint.Key
		}
	}
	return ""
}

// warnOfPools warns of pools and GPUs that nothing uses. It leaves out existing clusters, whose
// pools others may use, and stacks without jobs, which may get some later.
func (s *Stack) warnOfPools(p *input.Problems) {
	if s.existing() || len(s.Jobs) == 0 {
		return
	}
	uses := s.poolUses()
	for i, pool := range s.NodePools {
		if s.Cluster.ReleaseChannel == "RAPID" && strings.HasPrefix(pool.MachineType, "a3-") {
			p.Warn(field.NewPath(clusterKey, "releaseChannel"), "RAPID brings the newest node images first, on which %s may not run; "+
				"write STABLE, and hold the nodes with maintenance.exclusions", pool.MachineType)
		}
		switch at := field.NewPath(nodePoolsKey).Index(i); {
		case pool.QueuedProvisioning:
		case uses[pool.Name] == nil:
			p.Warn(at, "nothing of the stack runs on the pool %s, whose nodes are billed; name it in nodePool of a role, or remove it", pool.Name)
		case pool.GPU != nil && !uses[pool.Name].gpus:
			p.Warn(at, "no role on the pool %s requests its GPUs, which are billed; request %s in resources.limits of the role, "+
				"or choose a machine type without GPUs", pool.Name, ResourceGPU)
		}
	}
}

// checkGPU checks that the machine type of a pool includes or supports its GPUs.
func checkGPU(p *input.Problems, path *field.Path, pool Pool, m gcp.Machine) {
	gpu := pool.GPU
	if gpu == nil {
		return
	}
	switch {
	case m.GPUs > 0:
		if gpu.Type != m.GPUType || gpu.Count != m.GPUs {
			p.Forbidden(path, "%s includes %d × %s; remove gpu, or choose another machine type", m.Type, m.GPUs, m.GPUType)
		}
	case !m.TakesGPUs():
		p.Forbidden(path, "%s does not support GPUs; remove gpu, or choose a machine type that has GPUs, or an N1", m.Type)
	default:
		switch counts := m.AttachableCounts(gpu.Type); {
		case slices.Contains(counts, gpu.Count):
		case len(counts) == 0:
			p.Invalid(path.Child("type"), gpu.Type, "cannot be attached to %s; choose other GPUs, like nvidia-tesla-t4, or fewer vCPUs", m.Type)
		default:
			p.Invalid(path.Child("count"), gpu.Count, "%s supports %s of %s; write one of these, or choose another machine type",
				m.Type, input.Or(input.Words(counts, strconv.Itoa)), gpu.Type)
		}
	}
}

// checkDriver checks the driver, and that it works on the images of all GPU pools.
func (s *Stack) checkDriver(p *input.Problems) {
	d, version := s.NVIDIADriver, field.NewPath(nvidiaDriverKey, "version")
	image, reason := gcp.ImageCOS, "the installer "+string(d.Installer)
	switch d.Installer {
	case InstallerManaged:
		if !input.OneOf(p, version, d.Version, "DEFAULT", "LATEST") || d.Version == "DEFAULT" {
			return // GKE installs it on every image
		}
		reason = "nvidiaDriver.version LATEST"
	case InstallerUbuntu:
		image = gcp.ImageUbuntu
		if d.Version != "" {
			input.OneOf(p, version, d.Version, ubuntuDrivers...)
		}
	default:
		return // reported by the enumeration
	}
	for i, pool := range s.NodePools {
		at := field.NewPath(nodePoolsKey).Index(i)
		if pool.GPU != nil && pool.ImageType != image && (pool.ImageType == gcp.ImageCOS || pool.ImageType == gcp.ImageUbuntu) {
			p.Invalid(at.Child("imageType"), pool.ImageType,
				"must be %s on a GPU pool, as %s works on no other; write %s or choose another NVIDIA driver", image, reason, image)
		}
	}
}

func (s *Stack) checkExistingCluster(p *input.Problems) {
	at, c := field.NewPath(clusterKey), s.Cluster
	input.OnlyFields(p, at, c, "of an existing cluster", "name", "existing", "replace")
	existing := at.Child("existing")
	if c.Existing.Kubeconfig == "" && c.Existing.Context == "" {
		p.Required(existing.Child("context"), "write a context of your kubeconfig, as `kubectl config get-contexts` lists them, "+
			"or kubeconfig with the path of one")
	}
	if k := c.Existing.Kubeconfig; k != "" && !path.IsAbs(k) {
		p.Invalid(existing.Child("kubeconfig"), k,
			"must be the absolute path of a kubeconfig file, because Pulumi runs programs in other directories")
	}
	s.checkPool(p, existing.Child("systemPool"), c.Existing.SystemPool, s.poolNames(), false)
	for i, pool := range s.NodePools {
		input.OnlyFields(p, field.NewPath(nodePoolsKey).Index(i), pool, "of an existing pool",
			"name", "machineType", "nodes", "autoscaling", "spareNodes", "spot", "gpu", "maxPodsPerNode", "taints")
	}
}

// checkSystemPool checks the system pool of a cluster that the stack creates.
func (s *Stack) checkSystemPool(p *input.Problems) {
	path, pool := field.NewPath(clusterKey, "systemPool"), s.Cluster.SystemPool
	machineType := path.Child("machineType")
	switch m, ok := s.MachineTypes.find(p, machineType, pool.MachineType); {
	case ok && (m.GPUs > 0 || m.Arm()):
		p.Invalid(machineType, m.Type,
			"has GPUs or Arm processors, and nothing in the system pool can use them; write a type without, like e2-standard-4")
	case ok && !slices.Contains(m.BootDisks(), gcp.PDBalanced):
		p.Invalid(machineType, m.Type,
			"does not support pd-balanced, the boot disk type of the system pool; write a type that does, like e2-standard-4")
	}
	switch {
	case pool.Nodes < 1: // reported by its tag
	case pool.Nodes < 2 && s.Cluster.DeletionProtection:
		p.Invalid(path.Child("nodes"), pool.Nodes, "must be at least 2, so that the cluster's own services survive the loss of "+
			"a node; only a cluster with deletionProtection: false can have 1")
	default:
		checkSpread(p, path.Child("nodes"), s.system)
	}
}
