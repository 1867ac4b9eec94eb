package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/check"
	"persia/config/jobspec"
	"persia/config/pod"
	"persia/config/poolspec"
)

// planner counts what runs on the node pools of a stack.
type planner struct{ *Stack }

// Plan is what the stack's node pools must hold, and what they do.
func (s *Stack) Plan() capacity.Plan { return planner{s}.plan() }

func (s planner) plan() capacity.Plan {
	var pools []capacity.Pool
	var usage []capacity.Usage
	for _, p := range s.Pools() {
		machine, _ := p.Machine(s.MachineTypes)
		pools = append(pools, capacity.Pool{
			Name:    p.Name,
			Machine: machine,
			Spot:    p.Spot,
			Node:    s.nodeRoom(p),
			Nodes:   p.MostNodes(),
			Pods:    s.podsOn(p.Name),
		})
		usage = append(usage, capacity.Usage{
			Machine:   machine,
			Spot:      p.Spot,
			Nodes:     p.MostNodes(),
			BootDisk:  capacity.Disk{Type: p.Disk.Type, GB: p.Disk.SizeGB},
			LocalSSDs: p.LocalSSDs,
		})
	}
	plan := capacity.NewPlan(pools, s.price)
	if s.Cluster.Existing == nil {
		plan.Quotas = capacity.Quotas(s.Cluster.Region, s.Cluster.PrivateNodes, usage, s.createdDisks())
		plan.Ranges = s.Cluster.Network.Ranges(s.addresses())
	}
	return plan
}

func (s planner) price(machineType string, spot bool) (float64, bool) {
	price := s.MachineTypes[machineType].HourlyPrice
	if spot {
		price = s.MachineTypes[machineType].SpotHourlyPrice
	}
	return price, price > 0
}

// nodeRoom is what a node of a pool leaves to the pods that are assigned to it.
func (s planner) nodeRoom(p poolspec.Pool) capacity.Resources {
	machine, _ := p.Machine(s.MachineTypes)
	room := capacity.Allocatable(machine)
	room.Pods = int64(p.MaxPodsPerNode)
	// Of an existing pool's disks nothing is known.
	room.EphemeralBytes = 1 << 60
	if s.Cluster.Existing == nil {
		_, room.EphemeralBytes = capacity.EphemeralStorage(p.Disk.SizeGB, p.LocalSSDs)
	}
	room = room.Minus(capacity.NodeAgents)
	if p.GPU != nil {
		room.GPUs = p.GPU.AllocatableGPUs()
		if s.NVIDIADriver.Installer != poolspec.InstallerManaged {
			room = room.Minus(capacity.DriverInstaller)
		}
	}
	if hostsAgents(s.Stack, p) {
		room = room.Minus(pod.Requests(s.PEDL.Agent.Resources))
	}
	return room
}

// podsOn are the pods that are assigned to a pool.
func (s planner) podsOn(pool string) []capacity.Pods {
	var pods []capacity.Pods
	for _, kind := range jobspec.Kinds() {
		pods = append(pods, s.rolesOn(pool, kind)...)
	}
	pods = append(pods, s.natsServersOn(pool)...)
	if s.SystemPoolName() == pool {
		pods = append(pods, s.systemPods()...)
	}
	return append(pods, s.pedlPods(pool)...)
}

// systemPods are those of the system pool that no stack file tells of.
func (s planner) systemPods() []capacity.Pods {
	operators, gateways, completions, operatorCompletions := 0, 0, 0, 0
	if s.UsesOperator() {
		operators = 1
	}
	for _, j := range s.Jobs {
		if j.EnableMetrics {
			gateways++
		}
		if j.Engine == jobspec.EngineStatefulSet {
			completions++
		} else {
			operatorCompletions++
		}
	}
	return []capacity.Pods{
		capacity.ClusterAgents,
		{Name: "NATS operator", Count: 1, Requests: capacity.NATSOperator},
		{Name: "PERSIA operator", Count: operators, Requests: capacity.PERSIAOperator},
		{Name: "metrics gateway", Count: gateways, Requests: capacity.MetricsGateway},
		{Name: "completion", Count: completions, Requests: capacity.Completion},
		{Name: "completion by PERSIA's operator", Count: operatorCompletions, Requests: capacity.OperatorCompletion},
	}
}

// rolesOn are the replicas of one part of all jobs that are assigned to a pool,
// those of the same size together.
func (s planner) rolesOn(pool string, kind jobspec.Kind) []capacity.Pods {
	var sizes []capacity.Resources
	replicas, jobs := map[capacity.Resources]int{}, map[capacity.Resources][]string{}
	for i := range s.Jobs {
		role := kind.Of(&s.Jobs[i])
		if role.NodePool != pool || s.Jobs[i].Suspend {
			continue
		}
		size := s.podRequests(&s.Jobs[i], kind)
		if jobs[size] == nil {
			sizes = append(sizes, size)
		}
		replicas[size] += role.Replicas
		jobs[size] = append(jobs[size], s.Jobs[i].Name)
	}
	var pods []capacity.Pods
	for _, size := range sizes {
		pods = append(pods, capacity.Pods{
			Name:     kind.Field + " of " + someJobs(jobs[size]),
			Count:    replicas[size],
			Requests: size,
			Priority: kind.Priority.Value,
		})
	}
	return pods
}

func someJobs(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}

// capacity checks that every pool holds its pods. The stack must be valid
// otherwise.
func (v *validator) capacity() {
	for _, pool := range v.stack.Plan().Pools {
		if pool.Fits() {
			continue
		}
		path := v.nodesPath(pool.Name)
		if len(pool.TooLarge) > 0 {
			v.Invalid(path, pool.Nodes, "nodes of %s are too small for a pod of %s; choose a larger machine type", pool.Machine.Type, pool.TooLarge[0].Name)
			continue
		}
		needed := pool.Needed
		if p, _ := v.stack.Pool(pool.Name); v.stack.Cluster.Existing == nil {
			needed = p.WholeZones(needed)
		}
		v.Invalid(path, pool.Nodes, "%s; write %d", tooFew(pool), needed)
	}
}

// tooFew says why the nodes of a pool do not hold its pods.
func tooFew(pool capacity.PoolPlan) string {
	nodes, are, have := fmt.Sprintf("%d nodes of %s", pool.Nodes, pool.Machine.Type), "are", "they have"
	if pool.Nodes == 1 {
		nodes, are, have = "1 node of "+pool.Machine.Type, "is", "it has"
	}
	kind := pool.Pods[0]
	switch missing, known := pool.Missing(); {
	case known:
		return fmt.Sprintf("%s hold %d of %d × %s, %d per node, and %d do not fit",
			nodes, kind.Count-missing, kind.Count, kind.Name, pool.Holds(kind), missing)
	case !pool.Used.Within(pool.Node.Times(pool.Nodes)):
		return fmt.Sprintf("%s %s too few for %s, which request more than %s", nodes, are, check.And(pool.Kinds()), have)
	default:
		return fmt.Sprintf("%s %s too few for %s, depending on the order in which they are scheduled", nodes, are, check.And(pool.Kinds()))
	}
}

// nodesPath is where a pool's number of nodes is written.
func (v *validator) nodesPath(pool string) *field.Path {
	for i, p := range v.stack.NodePools {
		switch path := field.NewPath(nodePoolsKey).Index(i); {
		case p.Name != pool:
		case p.Autoscaling != nil:
			return path.Child("autoscaling", "maxNodes")
		default:
			return path.Child("nodes")
		}
	}
	return field.NewPath(clusterKey, "systemPool", "nodes")
}
