package config

import (
	"fmt"
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
	if ok && valid && s.Cluster.Existing == nil { // an existing pool may have more resources
		checkResourceNames(p, at, who, r, pool)
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
// one stays pending.
func checkResourceNames(p *input.Problems, path *field.Path, who string, r corev1.ResourceRequirements, pool Pool) {
	for section, list := range map[string]corev1.ResourceList{"limits": r.Limits, "requests": r.Requests} {
		for name, q := range list {
			switch at := path.Child(section).Key(string(name)); {
			case nodeResources.Has(name):
			case strings.HasPrefix(string(name), "nvidia.com/mig-"):
				p.Invalid(at, q.String(), "is not a resource of the nodes of pool %q, because GKE counts GPU partitions as %s too; %s must request that", pool.Name, ResourceGPU, who)
			default:
				p.Invalid(at, q.String(), "is not a resource of any node of pool %q, so the pods of %s would stay pending; remove it", pool.Name, who)
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
				who, pool.Name, pool.MachineType, has.text, s.orMachines(r, pool))
		}
	}
}

// orMachines suggests machine types with room for a replica.
func (s *Stack) orMachines(r corev1.ResourceRequirements, pool Pool) string {
	gpuType := ""
	if pool.GPU != nil {
		gpuType = pool.GPU.Type
	}
	types := capacity.MachinesFor(PodRequests(r), gpuType, func(m gcp.Machine) capacity.Resources {
		other := pool
		other.MachineType, other.GPU = m.Type, nil
		if m.GPUs > 0 {
			other.GPU = &GPU{Type: m.GPUType, Count: m.GPUs}
		}
		return s.nodeRoom(other)
	})
	if len(types) == 0 {
		return ""
	}
	return ", or choose a machine type that holds it, like " + input.Or(types)
}

// checkGPUs checks that a node has the GPUs, or partitions of GPUs, that one replica requests.
func (s *Stack) checkGPUs(p *input.Problems, path *field.Path, who string, r corev1.ResourceRequirements, pool Pool) {
	m, ok := pool.Machine(s.MachineTypes)
	q, at, asks := askedAmount(path, r, ResourceGPU)
	if !ok || !asks {
		return
	}
	has := int64(m.GPUs)
	if pool.GPU != nil {
		has = GPU{Type: pool.GPU.Type, Count: m.GPUs, Partition: pool.GPU.Partition}.AllocatableGPUs()
	}
	switch {
	case has == 0:
		p.Invalid(at, q.String(), "%s requests %s %s, but pool %q has none; assign it to a GPU pool, or remove the GPUs", who, &q, ResourceGPU, pool.Name)
	case q.CmpInt64(has) > 0:
		p.Invalid(at, q.String(), "%s requests %s %s, but a node of pool %q has %d; request at most that, or choose a machine type other than %s", who, &q, ResourceGPU, pool.Name, has, m.Type)
	}
}

// checkOpenCheckpoint checks that the disk of a node holds the files of a checkpoint that a
// replica writes at the same time: the sidecar of a bucket keeps them there until they are
// closed.
func (s *Stack) checkOpenCheckpoint(p *input.Problems, at *field.Path, j *Job, role NamedRole, pool Pool) {
	sidecar, ok := j.GCSFuseSidecar(role.Kind)
	room := s.nodeRoom(pool).EphemeralBytes
	if open := j.OpenCheckpointBytes(role.Kind); !ok || open < sidecar.EphemeralBytes || open <= room {
		return
	}
	gibibytes := func(bytes int64) string { return fmt.Sprintf("%.1fGi", float64(bytes)/capacity.GiB) }
	p.Invalid(at, j.HashmapShards, "makes %s write %s of a checkpoint at the same time, which stay on the node until they are in the bucket, but the disk of a node of pool %q leaves %s to pods; increase disk.sizeGb of the pool, or num_hashmap_internal_shards of the job's global configuration and hashmapShards with it",
		role.Field, gibibytes(sidecar.EphemeralBytes), pool.Name, gibibytes(room))
}

// checkCapacity checks that every pool holds its pods. The stack must have no other problem.
func (s *Stack) checkCapacity(p *input.Problems) {
	for _, pool := range s.Plan().Pools {
		path := s.nodesPath(pool.Name)
		switch {
		case pool.Fits():
		case len(pool.TooLarge) > 0:
			p.Invalid(path, pool.Nodes, "nodes of %s have too little%s for a pod of %s; %s", pool.Machine.Type, before(pool.Short()), pool.TooLarge[0].Name, s.remedy(pool))
		default:
			p.Invalid(path, pool.Nodes, "%s; %s", tooFew(pool), s.remedy(pool))
		}
	}
}

// remedy says what to write so that a pool holds its pods: the cheapest way that is known, and how many
// nodes.
func (s *Stack) remedy(pool capacity.PoolPlan) string {
	configured, _ := s.Pool(pool.Name)
	needed, created := pool.Needed, s.Cluster.Existing == nil && pool.Name != s.SystemPoolName()
	if s.Cluster.Existing == nil {
		needed = configured.WholeZones(needed)
	}
	nodes := ""
	if needed > 0 {
		nodes = fmt.Sprintf(", or write %d", needed)
	}
	other := configured
	switch short := pool.Short(); {
	case created && short == capacity.EphemeralStorageName && configured.LocalSSDs == 0:
		for other.Disk.SizeGB < mostDiskGB {
			if other.Disk.SizeGB += 10; pool.FitsOn(s.nodeRoom(other)) {
				return fmt.Sprintf("write disk.sizeGb: %d for the pool %s, or request less, like sidecar.ephemeralStorage of buckets%s", other.Disk.SizeGB, pool.Name, nodes)
			}
		}
	case created && short == capacity.PodsName:
		for other.MaxPodsPerNode < mostPodsPerNode {
			if other.MaxPodsPerNode++; pool.FitsOn(s.nodeRoom(other)) {
				return fmt.Sprintf("write maxPodsPerNode: %d for the pool %s%s", other.MaxPodsPerNode, pool.Name, nodes)
			}
		}
	}
	machine := ""
	if created {
		machine = s.cheaperMachine(pool, configured, needed)
	}
	switch {
	case machine != "":
		return machine + nodes
	case needed > 0:
		return fmt.Sprintf("write %d", needed)
	default:
		return "choose a larger machine type"
	}
}

// cheaperMachine names the cheapest machine type that lets the pool's nodes hold its pods, if those nodes
// cost less than the needed ones, or if no number of nodes is enough.
func (s *Stack) cheaperMachine(pool capacity.PoolPlan, configured Pool, needed int) string {
	limit, cheapest := math.Inf(1), ""
	if price, known := s.price(pool.Machine, pool.Spot); needed > 0 && !known {
		return ""
	} else if needed > 0 {
		limit = price.Hourly * float64(needed)
	}
	nodes, most := float64(pool.Nodes), limit
	for _, name := range gcp.MachineTypes() {
		m, _ := gcp.Lookup(name)
		price, known := s.price(m, pool.Spot)
		if !known || price.Hourly*nodes >= limit || m.Arm() || (configured.GPU == nil) != (m.GPUs == 0) || configured.GPU != nil && m.GPUType != configured.GPU.Type {
			continue
		}
		other := configured
		if other.MachineType = name; m.GPUs > 0 {
			gpu := *configured.GPU
			gpu.Count, other.GPU = m.GPUs, &gpu
		}
		if room := s.nodeRoom(other); pool.Used.Within(room.Times(pool.Nodes)) && pool.FitsOn(room) {
			limit, cheapest = price.Hourly*nodes, name
		}
	}
	switch {
	case cheapest == "":
		return ""
	case needed == 0:
		return fmt.Sprintf("write machineType: %s, for %.2f %s an hour", cheapest, limit, gcp.PriceCurrency)
	}
	return fmt.Sprintf("write machineType: %s, for %.2f instead of %.2f %s an hour", cheapest, limit, most, gcp.PriceCurrency)
}

// before puts a space before a word, if there is one.
func before(word string) string {
	if word == "" {
		return ""
	}
	return " " + word
}

// tooFew explains why the nodes of a pool do not hold its pods.
func tooFew(pool capacity.PoolPlan) string {
	nodes, are, have := fmt.Sprintf("%d nodes of %s", pool.Nodes, pool.Machine.Type), "are", "they have"
	if pool.Nodes == 1 {
		nodes, are, have = "1 node of "+pool.Machine.Type, "is", "it has"
	}
	if holding := pool.Needed - pool.Spare; holding <= pool.Nodes {
		return fmt.Sprintf("%s %s too few for %d with pods and %d spare", nodes, are, holding, pool.Spare)
	}
	kind, lack := pool.Pods[0], ""
	if short := pool.Short(); short != "" {
		lack = ", and have too little " + short
	}
	switch missing, known := pool.Missing(); {
	case known:
		return fmt.Sprintf("%s hold %d of %d × %s, %d per node by %s, and %d do not fit",
			nodes, kind.Count-missing, kind.Count, kind.Name, pool.Holds(kind), pool.BoundBy, missing)
	case !pool.Used.Within(pool.Node.Times(pool.Nodes)):
		return fmt.Sprintf("%s %s too few for %s, which request more%s than %s", nodes, are, input.And(pool.Kinds()), before(pool.Short()), have)
	default:
		return fmt.Sprintf("%s %s too few for %s, depending on the order in which they are scheduled%s", nodes, are, input.And(pool.Kinds()), lack)
	}
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
