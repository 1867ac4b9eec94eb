package config

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

// Pool is a group of identical nodes. On an existing cluster, it describes an existing
// pool by Name, MachineType, Nodes or Autoscaling, SpareNodes, Spot, GPU, MaxPodsPerNode and
// Taints.
//
// The tag change of a field says what Google Cloud does when the field changes: update keeps
// the pool, although GKE may recreate its nodes one by one, and replace deletes the pool with
// all of its nodes and creates another.
type Pool struct {
	// Name is the name of the pool, by which you assign roles and NATS servers to it. The
	// name system is reserved.
	Name string `json:"name" change:"replace"`
	// MachineType is a predefined machine type of Compute Engine, like
	// n2-highmem-32, that is not shared-core, or one that machineTypes describes.
	MachineType string `json:"machineType" change:"update"`
	// Zones are the zones over which the nodes are spread evenly. Default: the cluster's zones.
	// If the cluster sets none either, GKE chooses three.
	Zones []string `json:"zones,omitempty" change:"update"`
	// Nodes is a fixed number of nodes across all zones. Set either Nodes or
	// Autoscaling.
	Nodes *int `json:"nodes,omitempty" change:"update"`
	// Autoscaling lets GKE choose the number of nodes.
	Autoscaling *Autoscaling `json:"autoscaling,omitempty" change:"update"`
	// SpareNodes is how many of the nodes the capacity plan leaves to the pods of lost nodes.
	SpareNodes int `json:"spareNodes,omitempty" change:"none"`
	// Spot creates spot nodes, which Google Cloud may reclaim at any time. They get the label and
	// the taint cloud.google.com/gke-spot=true.
	Spot bool `json:"spot,omitempty" change:"replace"`
	// QueuedProvisioning creates nodes for the nn-workers of a queued job, all of them at
	// once. pulumi-gcp 7.38 has no field for flex-start.
	QueuedProvisioning bool `json:"queuedProvisioning,omitempty" change:"replace"`
	// Reservation is the Compute Engine reservation that the nodes use: its name, or
	// projects/P/reservations/R in another project, with /reservationBlocks/B for one block.
	Reservation string `json:"reservation,omitempty" change:"replace"`
	// CompactPlacement places the nodes close to each other, in one zone.
	CompactPlacement bool `json:"compactPlacement,omitempty" change:"replace"`
	// GPU attaches GPUs to nodes whose machine type accepts them, or partitions its own. Default:
	// the GPUs of the machine type.
	GPU *GPU `json:"gpu,omitempty" change:"replace"`
	// ImageType is COS_CONTAINERD or UBUNTU_CONTAINERD. Default COS_CONTAINERD, or, for a GPU
	// pool, the image that the stack's NVIDIA driver needs.
	ImageType string `json:"imageType,omitempty" change:"replace" enum:"COS_CONTAINERD,UBUNTU_CONTAINERD"`
	Disk      Disk   `json:"disk,omitempty" change:"update"`
	// LocalSSDs is the number of 375 GB local SSDs that hold ephemeral storage instead of
	// the boot disk. Default: the SSDs that come with the machine, as with A2 Ultra, A3
	// and A4, or 0.
	LocalSSDs int `json:"localSsdCount,omitempty" change:"replace"`
	// GVNIC enables Google's faster virtual network interface. Default true, but false with
	// UBUNTU_CONTAINERD and for M1 and M2.
	GVNIC *bool `json:"gvnic,omitempty" change:"replace"`
	// FastSocket speeds up NCCL between GPU nodes with Container-Optimized OS.
	FastSocket bool `json:"fastSocket,omitempty" change:"update"`
	// SecureBoot rejects kernel modules that are not signed. Default true, but false for GPU
	// pools whose driver a DaemonSet installs.
	SecureBoot *bool `json:"secureBoot,omitempty" change:"replace"`
	// MaxPodsPerNode is from 8 to 256. It determines how many addresses GKE reserves
	// for a node.
	MaxPodsPerNode int     `json:"maxPodsPerNode,omitempty" default:"110" change:"replace"`
	Upgrade        Upgrade `json:"upgrade,omitempty" change:"update"`
	// Labels are Kubernetes labels of the nodes.
	Labels map[string]string `json:"labels,omitempty" change:"update"`
	// Taints are Kubernetes taints, which repel pods that do not tolerate them. Roles and NATS
	// servers tolerate the taints of their pool.
	Taints []Taint `json:"taints,omitempty" change:"update"`
}

// Autoscaling limits the number of nodes of a pool, across all of its zones.
type Autoscaling struct {
	// MinNodes is the minimum number of nodes. It may be 0.
	MinNodes int `json:"minNodes"`
	// MaxNodes is the maximum number of nodes.
	MaxNodes int `json:"maxNodes"`
	// LocationPolicy is ANY, which adds nodes in any zone that has capacity, or BALANCED, which
	// keeps the zones even. Default ANY for GPU pools and spot nodes, else BALANCED.
	LocationPolicy string `json:"locationPolicy,omitempty" enum:"ANY,BALANCED"`
}

// GPU describes the GPUs of a node.
type GPU struct {
	// Type is Compute Engine's name for the accelerator, like nvidia-tesla-a100.
	// Default: the type of the GPUs that the machine type comes with.
	Type string `json:"type,omitempty"`
	// Count is the number of GPUs per node. Default: the number that the machine type
	// comes with.
	Count int `json:"count,omitempty"`
	// Partition divides each GPU into instances of this size (MIG), like 1g.5gb. Each
	// instance counts as one nvidia.com/gpu.
	Partition string `json:"partition,omitempty"`
	// Sharing lets several containers use one GPU, or one partition.
	Sharing *Sharing `json:"sharing,omitempty"`
}

// Sharing lets containers share a GPU. Each share counts as one nvidia.com/gpu, and a
// container requests one.
type Sharing struct {
	// Strategy is TIME_SHARING, or MPS for a pool of an existing cluster. Pods need hostIPC
	// for GKE's MPS, which the policies of the stack refuse.
	Strategy string `json:"strategy" enum:"TIME_SHARING,MPS"`
	// MaxClients is how many containers share a GPU, from 2 to 48.
	MaxClients int `json:"maxClients"`
}

// Disk is the boot disk of a node.
type Disk struct {
	// Type is one of pd-standard, pd-balanced, pd-ssd and hyperdisk-balanced. Default pd-balanced,
	// or hyperdisk-balanced where machines require it. Required for a machine series that the
	// program does not know.
	Type string `json:"type,omitempty" enum:"pd-standard,pd-balanced,pd-ssd,hyperdisk-balanced"`
	// SizeGB is the size in GB.
	SizeGB int `json:"sizeGb,omitempty" default:"100"`
}

// Upgrade says how GKE upgrades nodes.
type Upgrade struct {
	// Strategy is SURGE, which upgrades node by node, or BLUE_GREEN, which needs every
	// node twice.
	Strategy string `json:"strategy,omitempty" default:"SURGE" enum:"SURGE,BLUE_GREEN"`
	// MaxSurge is the number of additional nodes during a SURGE upgrade. Default 1 for every 20
	// nodes, but 0 for GPU pools, reservations, M1 to M4, and pools for roles only.
	MaxSurge *int `json:"maxSurge,omitempty"`
	// MaxUnavailable is the number of nodes that may be unavailable during a SURGE upgrade. Default
	// 0, or 1 for every 20 nodes if MaxSurge is 0.
	MaxUnavailable *int `json:"maxUnavailable,omitempty"`
	// BatchNodes is the number of nodes that a BLUE_GREEN upgrade drains at once.
	// Default 1 for every 20 nodes of the pool.
	BatchNodes int `json:"batchNodes,omitempty"`
	// SoakSeconds is how long a BLUE_GREEN upgrade keeps the old nodes. Default 3600.
	SoakSeconds int `json:"soakSeconds,omitempty"`
}

// Taint is a Kubernetes taint, written as in Kubernetes.
type Taint struct {
	// Key is the key of the taint, like example.com/dedicated.
	Key string `json:"key"`
	// Value is the value of the taint, which may be empty.
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute.
	Effect corev1.TaintEffect `json:"effect" enum:"NoSchedule,PreferNoSchedule,NoExecute"`
}

// zonesByDefault is the number of zones that GKE chooses if there are none (GKE, "Regional
// clusters").
const zonesByDefault = 3

// newPool returns a pool with all defaults that depend on no other field.
func newPool(name, machineType string, nodes int) Pool {
	p := Pool{Name: name, MachineType: machineType, Nodes: &nodes}
	input.Defaults(&p)
	return p
}

// Resolve fills in the fields that depend on the machine type, the cluster, and the NVIDIA
// driver.
func (p *Pool) Resolve(stack *Stack) {
	driver := stack.NVIDIADriver
	m, known := stack.MachineTypes.lookup(p.MachineType)
	p.resolveGPU(m)
	if stack.existing() {
		return
	}
	if len(p.Zones) == 0 {
		p.Zones = slices.Clone(stack.Cluster.Zones)
	}
	if p.Autoscaling != nil && p.Autoscaling.LocationPolicy == "" {
		p.Autoscaling.LocationPolicy = p.locationPolicy()
	}
	if p.ImageType == "" {
		p.ImageType = gcp.ImageCOS
		if p.GPU != nil && driver.Installer == InstallerUbuntu {
			p.ImageType = gcp.ImageUbuntu
		}
	}
	if disks := m.BootDisks(); p.Disk.Type == "" && len(disks) > 0 {
		p.Disk.Type = disks[0]
	}
	if known && p.LocalSSDs == 0 {
		p.LocalSSDs = m.BundledLocalSSDs()
	}
	if p.GVNIC == nil {
		p.GVNIC = new(m.TakesGVNIC() && p.ImageType == gcp.ImageCOS)
	}
	if p.SecureBoot == nil {
		p.SecureBoot = new(p.GPU == nil || driver.Installer == InstallerManaged)
	}
	// Additional nodes would need machines and quota that the stack itself does not need.
	// They gain nothing where only roles run: a replica that moves ends its attempt.
	noSurge := p.GPU != nil || p.Reservation != "" || m.MemoryOptimized() || slices.Contains(stack.rolePoolsOnly(), p.Name)
	p.Upgrade.resolve(p.MostNodes(), noSurge)
}

// resolveGPU fills in the GPUs that the machine type includes.
func (p *Pool) resolveGPU(m gcp.Machine) {
	if m.GPUs == 0 {
		return
	}
	if p.GPU == nil {
		p.GPU = &GPU{}
	}
	if p.GPU.Type == "" {
		p.GPU.Type = m.GPUType
	}
	if p.GPU.Count == 0 {
		p.GPU.Count = m.GPUs
	}
}

func (p *Pool) locationPolicy() string {
	if p.GPU != nil || p.Spot || p.QueuedProvisioning {
		return "ANY"
	}
	return "BALANCED"
}

// Resolve fills in the version of the driver.
func (d *NVIDIADriver) Resolve() {
	if d.Installer == InstallerManaged && d.Version == "" {
		d.Version = "DEFAULT"
	}
}

// MostNodes returns the maximum number of nodes of a pool.
func (p Pool) MostNodes() int {
	switch {
	case p.Nodes != nil:
		return max(0, *p.Nodes)
	case p.Autoscaling != nil:
		return max(0, p.Autoscaling.MaxNodes)
	}
	return 0
}

// ZoneCount returns the number of zones of a pool.
func (p Pool) ZoneCount() int {
	if len(p.Zones) == 0 {
		return zonesByDefault
	}
	return len(p.Zones)
}

// WholeZones rounds a number of nodes up to a multiple of the zones, if the pool has a fixed
// number of nodes.
func (p Pool) WholeZones(nodes int) int {
	if p.Nodes == nil {
		return nodes
	}
	zones := p.ZoneCount()
	return (nodes + zones - 1) / zones * zones
}

// Machine returns the machine of a pool with its GPUs, and whether its type is known.
func (p Pool) Machine(machines Machines) (gcp.Machine, bool) {
	m, ok := machines.lookup(p.MachineType)
	if ok && p.GPU != nil && m.TakesGPUs() {
		m = m.WithGPUs(p.GPU.Type, p.GPU.Count)
	}
	return m, ok
}

// inEveryZone reports whether every zone of every region has the machines of a pool (Compute
// Engine, "Available regions and zones").
func inEveryZone(p Pool, m gcp.Machine) bool {
	return p.GPU == nil && slices.Contains([]string{"e2", "n1", "n2"}, m.Family())
}

// mostNodes is the node limit of a cluster (GKE, "Quotas and limits").
const mostNodes = 15000

func checkMost(p *input.Problems, path *field.Path, nodes int) {
	if nodes > mostNodes {
		p.Invalid(path, nodes, "must be at most %d, the limit of a GKE cluster", mostNodes)
	}
}

// checkSpread checks that a fixed number of nodes is a multiple of the zones: GKE sets a
// number of nodes per zone.
func checkSpread(p *input.Problems, path *field.Path, nodes, zones int) {
	checkMost(p, path, nodes)
	if zones == 0 || nodes%zones == 0 {
		return
	}
	below, above := nodes-nodes%zones, nodes-nodes%zones+zones
	if below == 0 {
		p.Invalid(path, nodes, "must be a multiple of the %d zones, to be spread evenly; write %d, or use fewer zones", zones, above)
		return
	}
	p.Invalid(path, nodes, "must be a multiple of the %d zones, to be spread evenly; write %d or %d", zones, below, above)
}

// SystemPoolName returns the name of the pool for everything except training: the cluster's
// own, or on an existing cluster the one that the stack file names.
func (s *Stack) SystemPoolName() string {
	if s.Cluster.Existing != nil {
		return s.Cluster.Existing.SystemPool
	}
	return SystemPoolName
}

// Pools returns all node pools of the cluster: the system pool, unless the cluster exists
// already, and the pools of the stack file.
func (s *Stack) Pools() []Pool {
	if s.Cluster.Existing != nil {
		return s.NodePools
	}
	return append([]Pool{s.systemPool()}, s.NodePools...)
}

// rolePoolsOnly returns the names of the pools on which roles of jobs run, but no NATS
// server and nothing of PEDL.
func (s *Stack) rolePoolsOnly() []string {
	others := []string{s.SystemPoolName()}
	for _, cluster := range s.NATSClusters() {
		others = append(others, cluster.NodePool)
	}
	if s.PEDL != nil {
		others = append(append(others, s.PEDL.NodePool), s.PEDL.Agent.NodePools...)
	}
	var pools []string
	for i := range s.Jobs {
		for _, role := range s.Jobs[i].Roles() {
			if !slices.Contains(others, role.NodePool) {
				pools = append(pools, role.NodePool)
			}
		}
	}
	return pools
}

// Pool returns the node pool with a name, and whether the cluster has one.
func (s *Stack) Pool(name string) (Pool, bool) {
	pools := s.Pools()
	if i := slices.IndexFunc(pools, func(p Pool) bool { return p.Name == name }); i >= 0 {
		return pools[i], true
	}
	return Pool{}, false
}

// PoolPath returns the path of a pool in the stack file.
func (s *Stack) PoolPath(name string) *field.Path {
	i := slices.IndexFunc(s.NodePools, func(p Pool) bool { return p.Name == name })
	if i < 0 {
		return field.NewPath(clusterKey, "systemPool")
	}
	return field.NewPath(nodePoolsKey).Index(i)
}

// systemPool returns the system pool of a cluster that the stack creates.
func (s *Stack) systemPool() Pool {
	system := newPool(SystemPoolName, s.Cluster.SystemPool.MachineType, s.Cluster.SystemPool.Nodes)
	system.Resolve(s)
	return system
}

// poolNames returns the names of the stack file's pools, in its order.
func (s *Stack) poolNames() []string {
	return input.Words(s.NodePools, func(p Pool) string { return p.Name })
}

// rolePools returns the names of the node pools that a role may name: the stack file's, or
// the system pool if the file has none.
func (s *Stack) rolePools() []string {
	if len(s.NodePools) == 0 {
		return []string{s.SystemPoolName()}
	}
	return s.poolNames()
}

// checkPool checks the name of a pool that pods are assigned to, and returns the pool. Only pods
// that ask for nodes, with asks, may run on a pool with queued provisioning.
func (s *Stack) checkPool(p *input.Problems, path *field.Path, name string, allowed []string, asks bool) (Pool, bool) {
	pool, ok := s.Pool(name)
	switch {
	case ok && slices.Contains(allowed, name) && (asks || !pool.QueuedProvisioning):
		return pool, true
	case ok && slices.Contains(allowed, name):
		p.Invalid(path, name, "has queuedProvisioning, which creates nodes only for pods with a ProvisioningRequest, and only nn-workers of a job with engine: jobset and queue have one; choose another pool, or remove queuedProvisioning")
	case !p.Decoded(field.NewPath(nodePoolsKey)):
	case len(allowed) == 0:
		p.Invalid(path, name, "must be a node pool, but the stack has none; add one in %s", nodePoolsKey)
	case name == "":
		p.Required(path, "write one of the stack's node pools: %s", input.Or(allowed))
	default:
		p.Invalid(path, name, "must be one of the stack's node pools: %s", input.Or(allowed))
	}
	return Pool{}, false
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
	if s.Cluster.Existing != nil || len(s.Jobs) == 0 {
		return
	}
	used, computes := map[string]bool{}, map[string]bool{}
	for _, c := range s.NATSClusters() {
		used[c.NodePool] = true
	}
	if s.PEDL != nil {
		used[s.PEDL.NodePool] = true
		for _, name := range s.PEDL.Agent.NodePools {
			used[name], computes[name] = true, true
		}
		if check := s.PEDL.SupportCheck; check != nil {
			used[check.NodePool], computes[check.NodePool] = true, true
		}
	}
	for i := range s.Jobs {
		for _, role := range s.Jobs[i].Roles() {
			used[role.NodePool] = true
			computes[role.NodePool] = computes[role.NodePool] || GPUs(role.Resources) > 0
		}
	}
	for i, pool := range s.NodePools {
		if s.Cluster.ReleaseChannel == "RAPID" && strings.HasPrefix(pool.MachineType, "a3-") {
			p.Warn(field.NewPath(clusterKey, "releaseChannel"), "RAPID brings the newest node images first, on which %s may not run; write STABLE, and hold the nodes with maintenance.exclusions", pool.MachineType)
		}
		switch at := field.NewPath(nodePoolsKey).Index(i); {
		case pool.QueuedProvisioning:
		case !used[pool.Name]:
			p.Warn(at, "nothing of the stack runs on the pool %s, whose nodes are billed; name it in nodePool of a role, or remove it", pool.Name)
		case pool.GPU != nil && !computes[pool.Name]:
			p.Warn(at, "no role on the pool %s requests its GPUs, which are billed; write %s in resources.limits of the role, or choose a machine type without GPUs", pool.Name, ResourceGPU)
		}
	}
}

// SystemPoolName is the name of the system pool of a cluster that the stack creates. Pools of the
// stack file cannot have this name.
const SystemPoolName = "system"

// PoolLabel is a label of every node with the name of its pool. It lets the user remove the
// last label of a pool: the provider omits an empty list of labels, and GKE refuses an update
// that names no field.
const PoolLabel = "persia.com/node-pool"

// longestPoolName is the limit of GKE (GKE API, NodePool).
const longestPoolName = 40

// checkPools checks the resolved node pools of a stack file. The path is of the list.
func checkPools(p *input.Problems, path *field.Path, stack *Stack) {
	c, pools := &poolChecker{p, stack}, stack.NodePools
	for i, pool := range pools {
		c.pool(path.Index(i), pool)
	}
	input.UniqueField(p, path, "name", pools, func(pool Pool) string { return pool.Name }, "is already used by nodePools[%d]; give each pool a different name")
}

// poolChecker checks the node pools of a cluster.
type poolChecker struct {
	*input.Problems
	stack *Stack
}

func (c *poolChecker) pool(path *field.Path, pool Pool) {
	c.Name(path.Child("name"), pool.Name, validation.IsDNS1035Label)
	c.AtMost(longestPoolName, path.Child("name"), pool.Name, "the limit of GKE")
	m, known := c.stack.MachineTypes.Check(c.Problems, path.Child("machineType"), pool.MachineType)
	c.poolSize(path, pool, m)
	if known {
		checkGPU(c.Problems, path.Child("gpu"), pool, m)
	}
	if pool.SpareNodes < 0 {
		c.Invalid(path.Child("spareNodes"), pool.SpareNodes, "must not be negative; write the number of nodes that may be lost at the same time")
	}
	checkMaxPods(c.Problems, path.Child("maxPodsPerNode"), pool.MaxPodsPerNode)
	c.taints(path.Child("taints"), pool)
	if c.stack.existing() {
		return
	}
	switch name := path.Child("name"); {
	case pool.Name == SystemPoolName:
		c.Invalid(name, pool.Name, "is the name of the cluster's system pool; choose another")
	case pool.Name == "default-pool":
		c.Invalid(name, pool.Name, "is the name of the pool that GKE creates with each cluster, which the stack removes; choose another")
	case strings.HasPrefix(pool.Name, "nap-"):
		c.Invalid(name, pool.Name, "begins with nap-, which is reserved for the pools of GKE's node auto-provisioning; choose another")
	}
	c.zones(path.Child("zones"), pool, m)
	c.gpuZones(path.Child("machineType"), pool)
	checkStrategy(c.Problems, path.Child("gpu", "sharing", "strategy"), pool.GPU)
	checkPoolLabels(c.Problems, path.Child("labels"), pool.Labels)
	c.provisioning(path, pool)
	checkUpgrade(c.Problems, path.Child("upgrade"), pool.Upgrade)
	c.fastSocket(path.Child("fastSocket"), pool)
	if known {
		c.ofSeries(path, pool, m)
	}
}

func (c *poolChecker) poolSize(path *field.Path, pool Pool, m gcp.Machine) {
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

// unknown reports whether the cluster has problems that were reported already.
func (c *poolChecker) unknown() bool { return !c.Decoded(field.NewPath(clusterKey)) }

// lacksZones reports whether a pool has no zones but needs them.
func (c *poolChecker) lacksZones(pool Pool, m gcp.Machine) bool {
	return len(pool.Zones) == 0 && !c.unknown() && m.Type != "" && !inEveryZone(pool, m)
}

// spread checks a fixed number of nodes against the zones, if they are known.
func (c *poolChecker) spread(path *field.Path, pool Pool, m gcp.Machine) {
	if c.stack.existing() || c.unknown() || c.lacksZones(pool, m) {
		checkMost(c.Problems, path, *pool.Nodes)
		return
	}
	checkSpread(c.Problems, path, *pool.Nodes, pool.ZoneCount())
}

func (c *poolChecker) autoscaling(path *field.Path, a Autoscaling) {
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
func (c *poolChecker) zones(path *field.Path, pool Pool, m gcp.Machine) {
	switch {
	case !c.Decoded(path):
	case len(pool.Zones) > 0 && !slices.Equal(pool.Zones, c.stack.Cluster.Zones):
		input.Zones(c.Problems, path, c.stack.Cluster.Region, pool.Zones)
	case c.lacksZones(pool, m):
		c.Required(path, "write the zones that have %s, here or in the zones of the cluster, because GKE would otherwise choose three zones of the region, and not all of them have it; `gcloud compute machine-types list --filter=name=%s` lists them", m.Type, m.Type)
	}
}

// gpuZones warns of zones that may not have the GPUs of a pool.
func (c *poolChecker) gpuZones(path *field.Path, pool Pool) {
	if pool.GPU == nil {
		return
	}
	have, known := gcp.GPUZones(pool.GPU.Type, c.stack.Cluster.Region)
	lack := slices.DeleteFunc(slices.Clone(pool.Zones), func(zone string) bool { return slices.Contains(have, zone) || gcp.IsAIZone(zone) })
	if !known || len(lack) == 0 || len(gcp.Zones(c.stack.Cluster.Region)) == 0 {
		return
	}
	where := "write " + input.Or(have) + " in zones of the pool"
	if len(have) == 0 {
		where = "choose another region, or other GPUs"
	}
	c.Warn(path, "%s is not in %s, as far as the program knows; %s. Its table may be old: `gcloud compute accelerator-types list --filter=name=%s` lists the zones", pool.GPU.Type, input.And(lack), where, pool.GPU.Type)
}

// checkMaxPods checks the maximum number of pods of a node (GKE, "Configure maximum Pods per
// node").
func checkMaxPods(p *input.Problems, path *field.Path, pods int) {
	input.Range(p, path, pods, 8, 256, "; omit it for 110")
}

func checkPoolLabels(p *input.Problems, path *field.Path, labels map[string]string) {
	input.Labels(p, path, labels)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if key == PoolLabel {
			p.Invalid(path.Key(key), key, "is set on every node by the program; remove it")
		}
		if domain := reservedDomain(key); domain != "" {
			p.Invalid(path.Key(key), key, "is in the domain %s, which is reserved for GKE; use your own prefix, or none", domain)
		}
	}
}

// reservedDomain returns the domain of Kubernetes or Google in the prefix of a label, or "".
func reservedDomain(label string) string {
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

func (c *poolChecker) taints(path *field.Path, pool Pool) {
	for i, t := range pool.Taints {
		at := path.Index(i)
		c.Name(at.Child("key"), t.Key, validation.IsQualifiedName)
		c.ownTaint(at.Child("key"), t.Key, pool)
		c.InvalidFor(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))
	}
	input.Unique(pool.Taints, func(t Taint) Taint { return Taint{Key: t.Key, Effect: t.Effect} }, func(i, first int, t Taint) {
		c.Duplicate(path.Index(i), t.Key+":"+string(t.Effect), "repeats the key and effect of taints[%d]; remove one of them", first)
	})
}

// ownTaint refuses taints that GKE or the program sets.
func (c *poolChecker) ownTaint(path *field.Path, key string, pool Pool) {
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
	case !c.stack.existing() && key != gcp.TaintSpot && reservedDomain(key) != "":
		c.Invalid(path, key, "is in the domain %s, which is reserved for Kubernetes and GKE; use your own prefix, or none", reservedDomain(key))
	}
}

// reservationForm matches the name of a reservation, or its path in another project, with an
// optional block (cluster-toolkit, modules/compute/gke-node-pool, specific_reservations).
var reservationForm = regexp.MustCompile(`^(projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/reservations/)?[a-z]([a-z0-9-]{0,61}[a-z0-9])?(/reservationBlocks/[a-z0-9-]{1,63})?$`)

// provisioning checks spot, queued provisioning, compact placement and reservations. Most of
// them exclude each other.
func (c *poolChecker) provisioning(path *field.Path, pool Pool) {
	c.spot(path.Child("spot"), pool)
	if pool.QueuedProvisioning {
		c.queued(path, pool)
	}
	if pool.CompactPlacement {
		c.compact(path, pool)
	}
	if pool.Reservation != "" && !reservationForm.MatchString(pool.Reservation) {
		c.Invalid(path.Child("reservation"), pool.Reservation, "must be the name of a reservation, like nn-workers, or projects/P/reservations/R for one in another project; append /reservationBlocks/B for one of its blocks")
	}
}

func (c *poolChecker) spot(path *field.Path, pool Pool) {
	switch {
	case !pool.Spot:
	case pool.QueuedProvisioning:
		c.Invalid(path, pool.Spot, "cannot be combined with queuedProvisioning, whose nodes are never preempted; remove one of them")
	case pool.Reservation != "":
		c.Invalid(path, pool.Spot, "cannot be combined with reservation, because reservations have no spot machines; remove one of them")
	}
}

// queued checks a pool with queued provisioning (GKE, "Run a large-scale workload with
// flex-start with queued provisioning", limitations).
func (c *poolChecker) queued(path *field.Path, pool Pool) {
	if pool.Nodes != nil {
		c.Invalid(path.Child("nodes"), *pool.Nodes, "cannot be combined with queuedProvisioning, which creates nodes on request; use autoscaling with minNodes 0 instead")
	}
	if a := pool.Autoscaling; a != nil && a.MinNodes > 0 {
		c.Invalid(path.Child("autoscaling", "minNodes"), a.MinNodes, "must be 0 with queuedProvisioning, which creates nodes on request")
	}
	if a := pool.Autoscaling; a != nil && a.LocationPolicy == "BALANCED" {
		c.Invalid(path.Child("autoscaling", "locationPolicy"), a.LocationPolicy, "cannot be combined with queuedProvisioning, which creates nodes wherever they are available; write ANY, or remove it")
	}
	if pool.Reservation != "" {
		c.Invalid(path.Child("reservation"), pool.Reservation, "cannot be combined with queuedProvisioning, which does not use reserved machines; remove one of them")
	}
	if pool.CompactPlacement {
		c.Invalid(path.Child("compactPlacement"), pool.CompactPlacement, "cannot be combined with queuedProvisioning; remove one of them")
	}
	if pool.Upgrade.Strategy == blueGreen {
		c.Invalid(path.Child("upgrade", "strategy"), blueGreen, "cannot be combined with queuedProvisioning, which cannot provide a second set of nodes; write %s, or remove it", surge)
	}
}

// mostCompactNodes is the limit of GKE (GKE, "Define compact placement for GKE nodes").
const mostCompactNodes = 1500

// compact checks a pool with compact placement.
func (c *poolChecker) compact(path *field.Path, pool Pool) {
	at := path.Child("compactPlacement")
	if len(pool.Zones) == 0 && !c.unknown() {
		c.Invalid(at, pool.CompactPlacement, "requires a single zone, but GKE chooses three zones for a pool without zones; write one in zones of the pool, or remove it")
	}
	if len(pool.Zones) > 1 {
		c.Invalid(at, pool.CompactPlacement, "requires a single zone, but the pool has the zones %s; write one zone, or remove it", input.And(pool.Zones))
	}
	if pool.MostNodes() > mostCompactNodes {
		c.Invalid(at, pool.CompactPlacement, "supports at most %d nodes, but the pool has up to %d; use fewer nodes, or remove it", mostCompactNodes, pool.MostNodes())
	}
	if pool.Reservation != "" {
		c.Invalid(at, pool.CompactPlacement, "cannot be combined with reservation: the reservation decides where its machines are, and gives none to a pool with a placement policy of its own; remove it")
	}
	if pool.Upgrade.Strategy == blueGreen {
		c.Invalid(path.Child("upgrade", "strategy"), blueGreen, "cannot be combined with compactPlacement, which has no room for a second set of nodes; write %s, or remove one of them", surge)
	}
}

// ofSeries checks the fields that depend on the series of a pool's machines.
func (c *poolChecker) ofSeries(path *field.Path, pool Pool, m gcp.Machine) {
	c.disk(path.Child("disk"), pool, m)
	c.localSSDs(path.Child("localSsdCount"), pool.LocalSSDs, m)
	if pool.Spot && !m.HasSpot() {
		c.Invalid(path.Child("spot"), pool.Spot, "is not available for %s; remove it, or choose a machine type of another series", m.Type)
	}
	if pool.CompactPlacement && !m.TakesCompactPlacement() {
		c.Invalid(path.Child("compactPlacement"), pool.CompactPlacement, "is not supported by the series of %s; remove it, or choose a machine type of %s", m.Type, input.Or(gcp.CompactFamilies()))
	}
	c.gvnic(path, pool, m)
}

// gvnic checks that the machine type and the image support the network interface: GKE has
// gVNIC only on Container-Optimized OS (GKE, "Using Google Virtual NIC").
func (c *poolChecker) gvnic(path *field.Path, pool Pool, m gcp.Machine) {
	at := path.Child("gvnic")
	switch cos := pool.ImageType == gcp.ImageCOS; {
	case m.NeedsGVNIC() && !cos:
		c.Invalid(path.Child("imageType"), pool.ImageType, "is not supported by %s, whose only network interface is gVNIC, which GKE offers only on %s; write that (for a GPU pool, with the NVIDIA driver installer %s or %s), or choose another machine type", m.Type, gcp.ImageCOS, InstallerManaged, InstallerCOS)
	case m.NeedsGVNIC() && !*pool.GVNIC:
		c.Invalid(at, false, "is not supported by %s, which has no other network interface; remove it", m.Type)
	case *pool.GVNIC && !m.TakesGVNIC():
		c.Invalid(at, true, "is not supported by GKE on %s; remove it", m.Type)
	case *pool.GVNIC && !cos:
		c.Invalid(at, true, "requires the image %s, but the pool has %s; remove it, or change the image", gcp.ImageCOS, pool.ImageType)
	}
}

// The sizes of GKE's node images: 12 GB since 1.32 (GoogleCloudPlatform/magic-modules#13788),
// and 15 GB with GPUs (#2505).
const leastDiskGB, leastGPUDiskGB = 12, 15

// muchDiskGB is the size of a boot disk above which the program warns.
const muchDiskGB = 10_000

// disk checks the boot disk against the limits of GKE (GKE API, NodeConfig) and Compute
// Engine ("Persistent Disk", 64 TB). For series that are not in the catalogue, any type of
// disk may be right.
func (c *poolChecker) disk(path *field.Path, pool Pool, m gcp.Machine) {
	switch disks := m.BootDisks(); {
	case pool.Disk.Type == "":
		c.Required(path.Child("type"), "write one of %s: the series of %s is not in the catalogue, and might not support all of them", input.Or(gcp.DiskTypes), m.Type)
	case slices.Contains(gcp.DiskTypes, pool.Disk.Type) && len(disks) > 0 && !slices.Contains(disks, pool.Disk.Type):
		c.Invalid(path.Child("type"), pool.Disk.Type, "is not supported by %s; write %s", m.Type, input.Or(disks))
	}
	if pool.Disk.SizeGB > muchDiskGB {
		c.Warn(path.Child("sizeGb"), "%d GB is the size of the boot disk of each node, which holds images and logs; write it in storage if it is for data", pool.Disk.SizeGB)
	}
	least := leastDiskGB
	if pool.GPU != nil {
		least = leastGPUDiskGB
	}
	if pool.Disk.SizeGB < least || pool.Disk.SizeGB > 65536 {
		c.Invalid(path.Child("sizeGb"), pool.Disk.SizeGB, "must be from %d, the size of the node image, to 65536", least)
	}
}

func (c *poolChecker) localSSDs(path *field.Path, disks int, m gcp.Machine) {
	counts, known := m.LocalSSDs()
	switch {
	case disks < 0:
		c.Invalid(path, disks, "must be at least 1; remove it if you need none")
	case disks == 0 && strings.HasSuffix(m.Type, "-lssd"):
		c.Required(path, "write the number of local SSDs that %s includes; without it, every update would replace the pool", m.Type)
	case disks == 0 || !known || slices.Contains(counts, disks):
	case len(counts) == 0:
		c.Invalid(path, disks, "is not supported by %s; remove it, or choose another machine type", m.Type)
	default:
		c.Invalid(path, disks, "%s supports %s; write one of these, or choose another machine type", m.Type, input.Or(input.Words(counts, strconv.Itoa)))
	}
}

// fastSocket checks the requirements of NCCL Fast Socket (GKE, "Improve workload efficiency
// using NCCL Fast Socket").
func (c *poolChecker) fastSocket(path *field.Path, pool Pool) {
	switch {
	case !pool.FastSocket:
	case pool.GPU == nil:
		c.Invalid(path, pool.FastSocket, "is only for GPU pools; remove it")
	case pool.ImageType == gcp.ImageUbuntu:
		c.Invalid(path, pool.FastSocket, "requires the image %s, but the pool has %s; remove it, or choose an NVIDIA driver installer for %s", gcp.ImageCOS, gcp.ImageUbuntu, gcp.ImageCOS)
	case !*pool.GVNIC:
		c.Invalid(path, pool.FastSocket, "requires gvnic, which is false; remove one of them")
	}
}

// The strategies of upgrades.
const (
	surge     = "SURGE"
	blueGreen = "BLUE_GREEN"
)

const (
	// mostUpgradedAtOnce is the node limit of GKE (GKE API, UpgradeSettings).
	mostUpgradedAtOnce = 20
	// longestSoak is seven days, the limit of GKE (GKE, "Node pool upgrade strategies").
	longestSoak = 7 * 24 * 3600
	// upgradeRounds is the number of rounds in which all nodes are upgraded by default.
	// Upgrading 100 nodes one by one takes a working day, with a restart of the job each
	// time.
	upgradeRounds = 20
)

// resolve fills in the settings of the strategy, and leaves out the settings of the other one.
// With noSurge, an upgrade takes nodes away before it adds their replacements, by default.
func (u *Upgrade) resolve(nodes int, noSurge bool) {
	atOnce := min(max(1, (nodes+upgradeRounds-1)/upgradeRounds), mostUpgradedAtOnce)
	switch u.Strategy {
	case surge:
		if u.MaxSurge == nil {
			u.MaxSurge = new(atOnce)
			if noSurge {
				u.MaxSurge = new(0)
			}
		}
		if u.MaxUnavailable == nil {
			u.MaxUnavailable = new(0)
			if *u.MaxSurge == 0 {
				u.MaxUnavailable = new(atOnce)
			}
		}
	case blueGreen:
		if u.BatchNodes == 0 {
			u.BatchNodes = atOnce
		}
		if u.SoakSeconds == 0 {
			u.SoakSeconds = 3600
		}
	}
}

// UpgradeRoundTime is how long we expect GKE to drain and recreate the nodes of a round. GKE documents
// no time.
const UpgradeRoundTime = 10 * time.Minute

// NodesAtOnce returns how many nodes of a valid pool GKE recreates at once.
func (p Pool) NodesAtOnce() int {
	if p.Upgrade.Strategy == surge {
		return *p.Upgrade.MaxSurge + *p.Upgrade.MaxUnavailable
	}
	return p.Upgrade.BatchNodes
}

// Rounds returns the number of rounds in which GKE recreates all nodes of a valid pool.
func (p Pool) Rounds() int {
	atOnce := p.NodesAtOnce()
	return (p.MostNodes() + atOnce - 1) / atOnce
}

// UpgradeNodes returns the number of nodes that the pool has in addition while GKE upgrades it.
// The pool must be valid.
func (p Pool) UpgradeNodes() int {
	if p.Upgrade.Strategy == blueGreen {
		return p.MostNodes()
	}
	return *p.Upgrade.MaxSurge
}

// UpgradeUnavailable returns the number of nodes that the pool lacks while GKE upgrades it. The
// pool must be valid.
func (p Pool) UpgradeUnavailable() int {
	if p.Upgrade.Strategy == blueGreen {
		return 0
	}
	return *p.Upgrade.MaxUnavailable
}

func checkUpgrade(p *input.Problems, path *field.Path, u Upgrade) {
	if u.Strategy != surge && u.Strategy != blueGreen {
		return // reported as it was decoded
	}
	for _, f := range []struct {
		name     string
		strategy string
		written  bool
	}{
		{"maxSurge", surge, u.MaxSurge != nil},
		{"maxUnavailable", surge, u.MaxUnavailable != nil},
		{"batchNodes", blueGreen, u.BatchNodes != 0},
		{"soakSeconds", blueGreen, u.SoakSeconds != 0},
	} {
		if f.written && f.strategy != u.Strategy {
			p.Forbidden(path.Child(f.name), "applies only to the strategy %s, but the pool uses %s; remove it", f.strategy, u.Strategy)
		}
	}
	if u.Strategy == surge {
		checkSurge(p, path, *u.MaxSurge, *u.MaxUnavailable)
		return
	}
	if u.BatchNodes < 1 {
		p.Invalid(path.Child("batchNodes"), u.BatchNodes, "must be at least 1")
	}
	input.Range(p, path.Child("soakSeconds"), u.SoakSeconds, 1, longestSoak, ", seven days")
}

func checkSurge(p *input.Problems, path *field.Path, maxSurge, maxUnavailable int) {
	if !input.Range(p, path.Child("maxSurge"), maxSurge, 0, mostUpgradedAtOnce, "") ||
		!input.Range(p, path.Child("maxUnavailable"), maxUnavailable, 0, mostUpgradedAtOnce, "") {
		return
	}
	switch both := maxSurge + maxUnavailable; {
	case both == 0:
		p.Invalid(path.Child("maxUnavailable"), 0, "maxSurge is also 0, so no node could be upgraded; set one of them to at least 1")
	case both > mostUpgradedAtOnce:
		p.Invalid(path.Child("maxUnavailable"), maxUnavailable, "makes %d together with maxSurge, but GKE upgrades at most %d nodes at a time; write fewer", both, mostUpgradedAtOnce)
	}
}
