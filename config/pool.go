package config

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"persia/gcp"
)

// Pool is a group of identical nodes. On an existing cluster, it describes an existing pool by `name`, `machineType`,
// `nodes` or `autoscaling`, `spareNodes`, `spot`, `gpu`, `maxPodsPerNode` and `taints`.
//
// The tag change of a field says what Google Cloud does when the field changes: update keeps the pool, although GKE
// may recreate its nodes one by one, and replace deletes the pool with all of its nodes and creates another.
type Pool struct {
	// Name is the pool's name, which roles and NATS servers use. The name system is reserved.
	Name string `json:"name" form:"name" change:"replace"`
	// MachineType is a machine type of Compute Engine, like n2-highmem-32, that is not shared-core, or one of
	// persia:machineTypes.
	MachineType string `json:"machineType" change:"update"`
	// Zones are the zones over which the nodes are spread evenly. Default: the cluster's.
	Zones []string `json:"zones,omitempty" change:"update"`
	// Nodes is a fixed number of nodes across all zones. Set `nodes` or `autoscaling`.
	Nodes *int `json:"nodes,omitempty" change:"update"`
	// Autoscaling lets GKE choose the number of nodes.
	Autoscaling *Autoscaling `json:"autoscaling,omitempty" change:"update"`
	// SpareNodes is how many nodes the plan leaves to the pods of lost nodes.
	SpareNodes int `json:"spareNodes,omitempty" min:"0" change:"none"`
	// Spot creates spot nodes, which Google Cloud may reclaim. They get the label and taint
	// cloud.google.com/gke-spot=true.
	Spot bool `json:"spot,omitempty" change:"replace"`
	// QueuedProvisioning creates nodes for the nn-workers of a queued job, all at once.
	QueuedProvisioning bool `json:"queuedProvisioning,omitempty" change:"replace"`
	// Reservation is a Compute Engine reservation: its name, or projects/P/reservations/R in another project, with
	// /reservationBlocks/B for one block.
	Reservation string `json:"reservation,omitempty" change:"replace"`
	// CompactPlacement places the nodes close to each other, in one zone.
	CompactPlacement bool `json:"compactPlacement,omitempty" change:"replace"`
	// GPU attaches GPUs to nodes whose machine type accepts them.
	GPU *GPU `json:"gpu,omitempty" change:"replace"`
	// ImageType is COS_CONTAINERD or UBUNTU_CONTAINERD. Default COS_CONTAINERD, or what the NVIDIA driver needs.
	ImageType string `json:"imageType,omitempty" change:"replace" enum:"COS_CONTAINERD,UBUNTU_CONTAINERD"`
	Disk      Disk   `json:"disk,omitempty" change:"update"`
	// LocalSSDs is the number of 375 GB local SSDs that hold ephemeral storage instead of the boot disk. Default: the
	// machine's.
	LocalSSDs int `json:"localSsdCount,omitempty" min:"1" change:"replace"`
	// FastSocket speeds up NCCL between GPU nodes with Container-Optimized OS.
	FastSocket bool `json:"fastSocket,omitempty" change:"update"`
	// MaxPodsPerNode is from 8 to 256.
	MaxPodsPerNode int     `json:"maxPodsPerNode,omitempty" default:"110" min:"8" max:"256" change:"replace"`
	Upgrade        Upgrade `json:"upgrade,omitempty" change:"update"`
	// Labels are Kubernetes labels of the nodes.
	Labels map[string]string `json:"labels,omitempty" form:"labels" change:"update"`
	// Taints are Kubernetes taints. Roles and NATS servers tolerate their pool's.
	Taints []Taint `json:"taints,omitempty" change:"update"`

	list   string // the name of its list, or ""
	listed []Pool // of a list of pools, best first
}

// Autoscaling limits the number of nodes of a pool, across all of its zones.
type Autoscaling struct {
	// MinNodes is the minimum number of nodes. It may be 0.
	MinNodes int `json:"minNodes" min:"0" max:"15000"`
	// MaxNodes is the maximum number of nodes.
	MaxNodes int `json:"maxNodes" min:"1" max:"15000"`
	// LocationPolicy is ANY, where there is capacity, or BALANCED, which keeps the zones even. Default ANY for GPU
	// pools and spot nodes, else BALANCED.
	LocationPolicy string `json:"locationPolicy,omitempty" enum:"ANY,BALANCED"`
}

// GPU describes the GPUs of a node.
type GPU struct {
	// Type is Compute Engine's name, like nvidia-tesla-a100. Default: the machine's.
	Type string `json:"type,omitempty"`
	// Count is the number of GPUs per node. Default: the machine's.
	Count int `json:"count,omitempty"`
}

// Disk is the boot disk of a node.
type Disk struct {
	// Type is pd-standard, pd-balanced, pd-ssd or hyperdisk-balanced. Default pd-balanced, or hyperdisk-balanced
	// where machines require it. Required for a machine series that the program does not know.
	Type string `json:"type,omitempty" enum:"pd-standard,pd-balanced,pd-ssd,hyperdisk-balanced"`
	// SizeGB is the size in GB.
	SizeGB int `json:"sizeGb,omitempty" default:"100"`
}

// Upgrade limits how many nodes GKE upgrades at once.
type Upgrade struct {
	// MaxSurge is how many nodes an upgrade adds. Default 1 for every 20 nodes, but 0 for GPU pools, reservations, M1
	// to M4, and pools for roles only.
	MaxSurge *int `json:"maxSurge,omitempty" min:"0" max:"20"`
	// MaxUnavailable is how many nodes it takes away. Default 0, or 1 for every 20 nodes if `maxSurge` is 0.
	MaxUnavailable *int `json:"maxUnavailable,omitempty" min:"0" max:"20"`
}

// Taint is a Kubernetes taint, written as in Kubernetes.
type Taint struct {
	// Key is a name like example.com/dedicated.
	Key string `json:"key" form:"qualified"`
	// Value may be empty.
	Value string `json:"value,omitempty" form:"value"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute.
	Effect corev1.TaintEffect `json:"effect" enum:"NoSchedule,PreferNoSchedule,NoExecute"`
}

// PoolLabel is a label of every node with the name of its pool. It lets the user remove the last label of a pool: the
// provider omits an empty list of labels, and GKE refuses an update that names no field.
const PoolLabel = "persia.com/node-pool"

// PoolsLabel is a label of the nodes of a list with queued provisioning. The annotation of a job has the names of the pools.
const PoolsLabel = "persia.com/node-pools"

// zonesByDefault is the number of zones that GKE chooses if there are none (GKE, "Regional clusters").
const zonesByDefault = 3

// resolve fills in the fields that depend on the machine type, the cluster, and the NVIDIA driver.
func (p *Pool) resolve(site *Site, machines Machines, driver NVIDIADriver, use *poolUse) {
	m, _ := machines.lookup(p.MachineType)
	p.resolveGPU(m)
	if site.existing() {
		return
	}
	if len(p.Zones) == 0 {
		p.Zones = slices.Clone(site.Cluster.Zones)
	}
	if p.Autoscaling != nil && p.Autoscaling.LocationPolicy == "" {
		p.Autoscaling.LocationPolicy = "BALANCED"
		if p.GPU != nil || p.Spot || p.QueuedProvisioning {
			p.Autoscaling.LocationPolicy = "ANY"
		}
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
	p.LocalSSDs = cmp.Or(p.LocalSSDs, m.BundledLocalSSDs())
	// Additional nodes would need machines and quota that the stack itself does not need.
	// They gain nothing where only roles run: a replica that moves ends its attempt.
	noSurge := p.GPU != nil || p.Reservation != "" || m.MemoryOptimized() || use.rolesOnly()
	atOnce := min(max(1, (p.MostNodes()+upgradeRounds-1)/upgradeRounds), mostUpgradedAtOnce)
	u := &p.Upgrade
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
}

// resolveGPU fills in the GPUs that the machine type includes.
func (p *Pool) resolveGPU(m gcp.Machine) {
	if m.GPUs == 0 {
		return
	}
	p.GPU = cmp.Or(p.GPU, &GPU{})
	p.GPU.Type = cmp.Or(p.GPU.Type, m.GPUType)
	p.GPU.Count = cmp.Or(p.GPU.Count, m.GPUs)
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
func (p Pool) ZoneCount() int { return cmp.Or(len(p.Zones), zonesByDefault) }

// WholeZones rounds a number of nodes up to a multiple of the zones, if the pool has a fixed number of nodes.
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

const (
	// mostUpgradedAtOnce is the node limit of GKE (GKE API, UpgradeSettings).
	mostUpgradedAtOnce = 20
	// upgradeRounds is the number of rounds in which all nodes are upgraded by default. Upgrading 100 nodes one by
	// one takes a working day, with a restart of the job each time.
	upgradeRounds = 20
	// UpgradeRoundTime is how long we expect GKE to drain and recreate the nodes of a round. GKE documents no time.
	UpgradeRoundTime = 10 * time.Minute
)

// NodesAtOnce returns how many nodes of a valid pool GKE recreates at once.
func (p Pool) NodesAtOnce() int { return *p.Upgrade.MaxSurge + *p.Upgrade.MaxUnavailable }

// Rounds returns the number of rounds in which GKE recreates all nodes of a valid pool.
func (p Pool) Rounds() int {
	atOnce := p.NodesAtOnce()
	return (p.MostNodes() + atOnce - 1) / atOnce
}

// HasGVNIC reports whether nodes have Google's virtual network interface, which GKE supports only
// on Container-Optimized OS (GKE, "Using Google Virtual NIC").
func (p Pool) HasGVNIC() bool {
	return p.ImageType == gcp.ImageCOS && gcp.Machine{Type: p.MachineType}.TakesGVNIC()
}

// HasSecureBoot reports whether nodes refuse kernel modules that are not signed, as NVIDIA's driver
// of a DaemonSet is not.
func (p Pool) HasSecureBoot(driver NVIDIADriver) bool {
	return p.GPU == nil || driver.Installer == InstallerManaged
}

// poolUse says what of a stack runs on a pool: roles of jobs, other pods except PEDL's agents and its check, and
// anything that uses GPUs. as are the values of nodePool that name the pool.
type poolUse struct {
	roles, others, gpus bool
	as                  []string
}

func (u *poolUse) rolesOnly() bool { return u != nil && u.roles && !u.others }

// poolNamed returns the pool with a name, and whether there is one.
func poolNamed(pools []Pool, name string) (Pool, bool) {
	if i := slices.IndexFunc(pools, func(p Pool) bool { return p.Name == name }); i >= 0 {
		return pools[i], true
	}
	return Pool{}, false
}
