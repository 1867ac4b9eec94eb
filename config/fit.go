package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
	"persia/gcp"
)

// checkAssignment checks that a container fits a node of the pool that it is assigned to,
// and returns the pool. The path is of the object with nodePool and resources. Asks is whether its
// pods ask for nodes.
func (s *Stack) checkAssignment(p *input.Problems, path *field.Path, who, poolName string, r corev1.ResourceRequirements, allowed []string, asks bool) (Pool, bool) {
	at, before := path.Child("resources"), p.Count()
	checkResources(p, at, who, r)
	valid := p.Count() == before
	pool, ok := s.checkPool(p, path.Child("nodePool"), poolName, allowed, asks)
	if ok {
		s.checkRoom(p, at, who, r, pool)
		s.checkArm(p, path.Child("nodePool"), poolName, who, pool.MachineType)
	}
	if ok && valid {
		s.checkResourceNames(p, at, who, r, pool)
	}
	return pool, ok
}

// checkArm refuses Arm machines for pods that do not tolerate their taint.
func (s *Stack) checkArm(p *input.Problems, path *field.Path, value, who, machineType string) {
	if m := (gcp.Machine{Type: machineType}); m.Arm() && s.Cluster.Existing == nil {
		p.Invalid(path, value, "has Arm machines, %s, and GKE keeps the pods of %s off them; choose another machine type", machineType, who)
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
			if !nodeResources.Has(name) && (s.Cluster.Existing == nil || !device) {
				p.Invalid(path.Child(section).Key(string(name)), q.String(), "is not a resource of any node of pool %q, so the pods of %s would stay pending; remove it, and request GPUs, and partitions of GPUs, as %s", pool.Name, who, ResourceGPU)
			}
		}
	}
}

// checkRoom checks that an empty node has room for one replica.
func (s *Stack) checkRoom(p *input.Problems, path *field.Path, who string, r corev1.ResourceRequirements, pool Pool) {
	if _, ok := pool.Machine(s.MachineTypes); !ok {
		return
	}
	room := s.nodeRoom(pool)
	for _, has := range []struct {
		resource corev1.ResourceName
		amount   *resource.Quantity
		text     string
	}{
		{corev1.ResourceCPU, resource.NewMilliQuantity(room.MilliCPU, resource.DecimalSI), fmt.Sprintf("%.2f vCPU", float64(room.MilliCPU/10)/100)},
		{corev1.ResourceMemory, resource.NewQuantity(room.MemoryBytes, resource.BinarySI), fmt.Sprintf("%.1fGi", float64(room.MemoryBytes*10/capacity.GiB)/10)},
		{corev1.ResourceEphemeralStorage, resource.NewQuantity(room.EphemeralBytes, resource.BinarySI), fmt.Sprintf("%dGi of ephemeral storage", room.EphemeralBytes/capacity.GiB)},
	} {
		if q, at, ok := askedAmount(path, r, has.resource); ok && q.Cmp(*has.amount) > 0 {
			p.Invalid(at, q.String(), "%s does not fit on a node of pool %q: of %s, GKE and the pods on every node leave %s; request less%s",
				who, pool.Name, pool.MachineType, has.text, s.orMachine(r, pool))
		}
	}
}

// orMachine suggests a machine type with room for a replica.
func (s *Stack) orMachine(r corev1.ResourceRequirements, pool Pool) string {
	replica := capacity.Pods{Requests: PodRequests(r)}
	m, found := s.cheapestMachine(pool, func(node capacity.Resources) bool { return capacity.Pool{Node: node}.Holds(replica) > 0 })
	if !found {
		return ""
	}
	return ", or choose a machine type that holds it, like " + m.Type
}

// cheapestMachine returns the cheapest machine type of the catalogue whose nodes fit, if possible with the pool's
// type of GPU. Where the region has no list price, another region's ranks the machines.
func (s *Stack) cheapestMachine(pool Pool, fits func(node capacity.Resources) bool) (gcp.Machine, bool) {
	type rank struct {
		otherGPUs int
		price     float64
	}
	ranks := map[gcp.Machine]rank{}
	for _, name := range gcp.MachineTypes() {
		m, _ := gcp.Lookup(name)
		if m.Arm() || (m.GPUs > 0) != (pool.GPU != nil) {
			continue
		}
		price, known := s.price(m, pool.Spot)
		if !known {
			price.Hourly, known = m.ListPrice("us-central1", pool.Spot)
		}
		r := rank{price: math.Inf(1)}
		if known {
			r.price = price.Hourly
		}
		if pool.GPU != nil && m.GPUType != pool.GPU.Type {
			r.otherGPUs = 1
		}
		ranks[m] = r
	}
	cheapestFirst := func(a, b gcp.Machine) int {
		return cmp.Or(ranks[a].otherGPUs-ranks[b].otherGPUs, cmp.Compare(ranks[a].price, ranks[b].price), cmp.Compare(a.Type, b.Type))
	}
	for _, m := range slices.SortedFunc(maps.Keys(ranks), cheapestFirst) {
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

// checkGPUs checks that a node has the GPUs that one replica requests.
func (s *Stack) checkGPUs(p *input.Problems, path *field.Path, who string, r corev1.ResourceRequirements, pool Pool) {
	m, ok := pool.Machine(s.MachineTypes)
	q, at, asks := askedAmount(path, r, ResourceGPU)
	if !ok || !asks {
		return
	}
	if has := int64(m.GPUs); q.CmpInt64(has) > 0 {
		p.Invalid(at, q.String(), "%s requests %s %s, but a node of pool %q has %d; request at most that, or assign it to another pool", who, &q, ResourceGPU, pool.Name, has)
	}
}

// checkCapacity checks that every pool holds its pods. The stack must have no other problem.
func (s *Stack) checkCapacity(p *input.Problems) {
	for _, pool := range s.Plan().Pools {
		if !pool.Fits() {
			p.Invalid(s.nodesPath(pool.Name), pool.Nodes, "%s; %s", tooFew(pool), s.remedy(pool))
		}
	}
}

// tooFew explains why the nodes of a pool do not hold its pods.
func tooFew(pool capacity.PoolPlan) string {
	nodes := fmt.Sprintf("%d × %s", pool.Nodes, pool.Machine.Type)
	missing, alike := pool.Missing()
	switch short := cmp.Or(pool.Short(), "room"); {
	case len(pool.TooLarge) > 0:
		return fmt.Sprintf("a %s has too little %s for a pod of %s", pool.Machine.Type, short, pool.TooLarge[0].Name)
	case pool.Needed-pool.Spare <= pool.Nodes:
		return fmt.Sprintf("%s are too few for %d with pods and %d spare", nodes, pool.Needed-pool.Spare, pool.Spare)
	case alike:
		kind := pool.Pods[0]
		return fmt.Sprintf("%s hold %d of %d × %s, %d per node by %s", nodes, kind.Count-missing, kind.Count, kind.Name, pool.Holds(kind), pool.BoundBy)
	default:
		return fmt.Sprintf("%s have too little %s for %s, which may come in any order", nodes, short, input.And(pool.Kinds()))
	}
}

// remedy says what to write so that a pool holds its pods: the cheapest way that is known, and how many
// nodes.
func (s *Stack) remedy(pool capacity.PoolPlan) string {
	other, _ := s.Pool(pool.Name)
	needed, created := pool.Needed, s.Cluster.Existing == nil && pool.Name != s.SystemPoolName()
	if s.Cluster.Existing == nil {
		needed = other.WholeZones(needed)
	}
	nodes := ""
	if needed > 0 {
		nodes = fmt.Sprintf(", or write %d", needed)
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
	switch short := pool.Short(); {
	case created && short == capacity.EphemeralStorageName && other.LocalSSDs == 0 && grow(&other.Disk.SizeGB, 10, mostDiskGB):
		return fmt.Sprintf("write disk.sizeGb: %d for the pool %s, or request less, like sidecar.ephemeralStorage of buckets%s", other.Disk.SizeGB, pool.Name, nodes)
	case created && short == capacity.PodsName && grow(&other.MaxPodsPerNode, 1, mostPodsPerNode):
		return fmt.Sprintf("write maxPodsPerNode: %d for the pool %s%s", other.MaxPodsPerNode, pool.Name, nodes)
	}
	if !created && needed > 0 {
		return fmt.Sprintf("write %d", needed)
	}
	m, found := s.cheapestMachine(other, pool.FitsOn)
	now, known := s.price(pool.Machine, pool.Spot)
	then, knownThen := s.price(m, pool.Spot)
	cost, most := then.Hourly*float64(pool.Nodes), now.Hourly*float64(needed)
	switch found = found && m.GPUType == pool.Machine.GPUType; {
	case found && needed == 0:
		return "write machineType: " + m.Type
	case found && known && knownThen && cost < most:
		return fmt.Sprintf("write machineType: %s, for %.2f instead of %.2f %s an hour%s", m.Type, cost, most, gcp.PriceCurrency, nodes)
	case needed == 0:
		return "choose a larger machine type"
	}
	return fmt.Sprintf("write %d", needed)
}

// nodesPath returns the path of a pool's number of nodes.
func (s *Stack) nodesPath(pool string) *field.Path {
	i := slices.Index(s.poolNames(), pool)
	switch {
	case i < 0:
		return field.NewPath(clusterKey, "systemPool", "nodes")
	case s.NodePools[i].Autoscaling != nil:
		return field.NewPath(nodePoolsKey).Index(i).Child("autoscaling", "maxNodes")
	default:
		return field.NewPath(nodePoolsKey).Index(i).Child("nodes")
	}
}
