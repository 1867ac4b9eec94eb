package poolspec

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/decode"
	"persia/gcp"
)

// Context describes the cluster that holds the node pools.
type Context struct {
	Region string
	// Zones are the default zones of pools. If there are none, GKE chooses.
	Zones []string
	// Unknown is true if the cluster has problems that were reported already.
	Unknown bool
	// Existing is true if the cluster and its pools exist already.
	Existing bool
	// RolesOnly are the names of the pools on which only roles of jobs run.
	RolesOnly []string
}

// zonesByDefault is the number of zones that GKE chooses if there are none (GKE, "Regional
// clusters").
const zonesByDefault = 3

// New returns a pool with all defaults that depend on no other field.
func New(name, machineType string, nodes int) Pool {
	p := Pool{Name: name, MachineType: machineType, Nodes: &nodes}
	decode.Defaults(&p)
	return p
}

// Resolve fills in the fields that depend on the machine type, the cluster, and the NVIDIA
// driver.
func (p *Pool) Resolve(context Context, driver NVIDIADriver, machines Machines) {
	m, known := machines.lookup(p.MachineType)
	p.resolveGPU(m)
	if context.Existing {
		return
	}
	if len(p.Zones) == 0 {
		p.Zones = slices.Clone(context.Zones)
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
	noSurge := p.GPU != nil || p.Reservation != "" || m.MemoryOptimized() || slices.Contains(context.RolesOnly, p.Name)
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

func checkMost(p *check.Problems, path *field.Path, nodes int) {
	if nodes > mostNodes {
		p.Invalid(path, nodes, "must be at most %d, the limit of a GKE cluster", mostNodes)
	}
}

// CheckSpread checks that a fixed number of nodes is a multiple of the zones: GKE sets a
// number of nodes per zone.
func CheckSpread(p *check.Problems, path *field.Path, nodes, zones int) {
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
