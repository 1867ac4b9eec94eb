package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
	"persia/gcp"
)

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
	ok = ok && slices.Contains(allowed, name)
	switch machine := (gcp.Machine{Type: pool.MachineType}); {
	case ok && machine.Arm() && !s.existing():
		p.Invalid(path, name, "has Arm machines, %s, and GKE keeps pods off them; choose another machine type", machine.Type)
	case ok && pool.QueuedProvisioning && !asks:
		p.Try(p.Invalid(path, name, "has queuedProvisioning, which creates nodes only for pods with a ProvisioningRequest, and only "+
			"nn-workers of a job with engine: jobset and queue have one; choose another pool"), false,
			input.Edits{s.PoolPath(name).Child("queuedProvisioning"): nil}, "remove %s.queuedProvisioning", s.PoolPath(name))
	case ok:
		return pool, true
	case !p.Decoded(field.NewPath(nodePoolsKey)):
	case len(allowed) == 0:
		p.Invalid(path, name, "must be a node pool, but the stack has none; add one in %s", nodePoolsKey)
	case name == "":
		p.Choose(p.Required(path, "must be one of the stack's node pools"), path, allowed)
	default:
		p.Choose(p.Invalid(path, name, "must be one of the stack's node pools"), path, allowed)
	}
	return Pool{}, false
}

// checkAssignment checks the resources of a container, and the pool that it is assigned to, each at its path. Asks
// is whether its pods ask for nodes.
func (s *Stack) checkAssignment(p *input.Problems, at, poolAt *field.Path, who, poolName string, r corev1.ResourceRequirements,
	allowed []string, asks bool) {
	before := p.Count()
	checkResources(p, at, who, r)
	names := []string{poolName}
	if slices.Contains(s.poolLists(), poolName) {
		names = poolsIn(poolName)
	}
	for i, name := range names {
		path := poolAt
		if len(names) > 1 {
			path = poolAt.Index(i)
		}
		if pool, ok := s.checkPool(p, path, name, allowed, asks); ok && p.Count() == before {
			s.checkResourceNames(p, at, who, r, pool)
		}
	}
}

// nodeResources are the resources of the nodes of a pool that the stack creates.
var nodeResources = sets.New(corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, ResourceGPU)

// checkResourceNames refuses resources that no node of the pool has: a pod that requests
// one stays pending, and of a JobSet there is no pod. Existing nodes may have devices and huge pages.
func (s *Stack) checkResourceNames(p *input.Problems, path *field.Path, who string, r corev1.ResourceRequirements, pool Pool) {
	for section, list := range map[string]corev1.ResourceList{"limits": r.Limits, "requests": r.Requests} {
		for name, q := range list {
			device := isExtended(name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
			if !nodeResources.Has(name) && (!s.existing() || !device) {
				p.Invalid(path.Child(section).Key(string(name)), q.String(), "is not a resource of any node of pool %q, so the pods "+
					"of %s would stay pending; remove it, and request GPUs as %s", pool.Name, who, ResourceGPU)
			}
		}
	}
}

// cheapestMachine returns the cheapest machine type of the catalogue whose nodes fit, if possible with the pool's
// type of GPU. Where the region has no list price, another region's ranks the machines.
func (s *Stack) cheapestMachine(pool Pool, fits func(node capacity.Resources) bool) (gcp.Machine, bool) {
	price := func(m gcp.Machine) float64 {
		price, known := s.price(m, pool.Spot)
		if !known {
			price.Hourly, known = m.ListPrice("us-central1", pool.Spot)
		}
		if !known {
			price.Hourly = 1e6 // after all others
		}
		if pool.GPU != nil && m.GPUType != pool.GPU.Type {
			price.Hourly += 1e9 // after all with GPUs of the type
		}
		return price.Hourly
	}
	var all []gcp.Machine
	for _, name := range gcp.MachineTypes() {
		if m, _ := gcp.Lookup(name); !m.Arm() && (m.GPUs > 0) == (pool.GPU != nil) {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b gcp.Machine) int { return cmp.Compare(price(a), price(b)) })
	for _, m := range all {
		other := pool
		other.MachineType = m.Type
		if pool.GPU != nil {
			other.GPU = &GPU{Type: m.GPUType, Count: m.GPUs}
		}
		if fits(s.nodeRoom(other)) {
			return m, true
		}
	}
	return gcp.Machine{}, false
}

// checkCapacity checks that every pool holds its pods. The stack must have no other problem.
func (s *Stack) checkCapacity(p *input.Problems) {
	for _, pool := range s.Plan().Pools {
		if isList(pool.Name) && !pool.Fits() {
			s.refuseList(p, pool)
		} else if len(pool.TooLarge) > 0 {
			s.advise(p, p.Invalid(s.PoolPath(pool.Name).Child("machineType"), pool.Machine.Type,
				"has %s for a pod of %s: GKE and the pods on every node leave %.2f vCPU, %.1fGi of memory, %dGi of "+
					"ephemeral storage, and %s; request less, or assign it to another pool",
				lack(pool), pool.TooLarge[0].Name,
				float64(pool.Node.MilliCPU/10)/100, float64(pool.Node.MemoryBytes*10/capacity.GiB)/10,
				pool.Node.EphemeralBytes/capacity.GiB, input.Count(int(pool.Node.GPUs), "GPU")), pool)
		} else if !pool.Fits() {
			s.advise(p, p.Invalid(s.nodesPath(pool.Name), pool.Nodes, "%s", tooFew(pool)), pool)
		}
	}
}

// tooFew explains why the nodes of a pool do not hold its pods.
func tooFew(pool capacity.PoolPlan) string {
	nodes := fmt.Sprintf("%d × %s", pool.Nodes, pool.Machine.Type)
	missing, alike := pool.Missing()
	switch {
	case pool.Needed-pool.Spare <= pool.Nodes:
		return fmt.Sprintf("%s are too few for %d with pods and %d spare", nodes, pool.Needed-pool.Spare, pool.Spare)
	case alike:
		kind := pool.Pods[0]
		return fmt.Sprintf("%s hold %d of %d × %s, %d per node by %s",
			nodes, kind.Count-missing, kind.Count, kind.Name, pool.Holds(kind), pool.BoundBy)
	default:
		return fmt.Sprintf("%s have %s for %s, which may come in any order", nodes, lack(pool), input.And(pool.Kinds()))
	}
}

// lack says what the nodes of a pool are short of.
func lack(pool capacity.PoolPlan) string {
	short := cmp.Or(pool.Short(), "room")
	if strings.HasSuffix(short, "s") { // GPUs and pods
		return "too few " + short
	}
	return "too little " + short
}

// advise tries what makes a pool hold its pods: the cheapest way that is known, and how many nodes.
func (s *Stack) advise(p *input.Problems, refused *field.Error, pool capacity.PoolPlan) {
	other, _ := s.Pool(pool.Name)
	needed, at, created := pool.Needed, s.PoolPath(pool.Name), !s.existing() && pool.Name != s.SystemPoolName()
	if !s.existing() {
		needed = other.WholeZones(needed)
	}
	// grow increases a setting until the pods fit.
	grow := func(setting *int, step, most int) bool {
		for *setting < most {
			if *setting += step; pool.FitsOn(s.nodeRoom(other)) {
				return true
			}
		}
		return false
	}
	m, found := s.cheapestMachine(other, pool.FitsOn)
	found = found && !s.existing() && m.GPUType == pool.Machine.GPUType
	now, known := s.price(pool.Machine, pool.Spot)
	then, knownThen := s.price(m, pool.Spot)
	cost, most := then.Hourly*float64(pool.Nodes), now.Hourly*float64(needed)
	machine, and := input.Edits{at.Child("machineType"): m.Type}, ""
	if p.Given(at.Child("gpu")) { // which is of the former machines
		machine[at.Child("gpu")], and = nil, ", and remove gpu"
	}
	switch short := pool.Short(); {
	case created && short == capacity.EphemeralStorageName && other.LocalSSDs == 0 && grow(&other.Disk.SizeGB, 10, mostDiskGB):
		p.Try(refused, false, input.Edits{at.Child("disk", "sizeGb"): other.Disk.SizeGB},
			"write disk.sizeGb: %d for the pool %s, or request less, like sidecar.ephemeralStorage of buckets", other.Disk.SizeGB, pool.Name)
	case created && short == capacity.PodsName && grow(&other.MaxPodsPerNode, 1, mostPodsPerNode):
		p.Try(refused, false, input.Edits{at.Child("maxPodsPerNode"): other.MaxPodsPerNode},
			"write maxPodsPerNode: %d for the pool %s", other.MaxPodsPerNode, pool.Name)
	case found && known && knownThen && created && needed > 0 && cost < most:
		p.Try(refused, false, machine, "write machineType: %s%s, for %.2f instead of %.2f %s an hour", m.Type, and, cost, most, gcp.PriceCurrency)
	}
	if needed > 0 {
		p.Try(refused, false, input.Edits{s.nodesPath(pool.Name): needed}, "write %d", needed)
	}
	if found {
		p.Try(refused, true, machine, "write machineType: %s%s", m.Type, and)
	}
}

// nodesPath returns the path of a pool's number of nodes.
func (s *Stack) nodesPath(name string) *field.Path {
	if pool, _ := s.Pool(name); pool.Autoscaling != nil {
		return s.PoolPath(name).Child("autoscaling", "maxNodes")
	}
	return s.PoolPath(name).Child("nodes")
}
