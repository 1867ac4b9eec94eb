package config

import (
	"fmt"
	"slices"
	"strings"

	"persia/capacity"
	"persia/gcp"
)

// Plan compares what the node pools must hold with what they hold. Pools that an update deletes last take quotas, too.
func (s *Stack) Plan(leaving ...Pool) capacity.Plan {
	var pools []capacity.Pool
	var usage []capacity.Usage
	use := func(p Pool, machine gcp.Machine, nodes int) {
		disk := capacity.Disk{Type: p.Disk.Type, GB: p.Disk.SizeGB}
		usage = append(usage, capacity.Usage{Machine: machine, Spot: p.Spot, Nodes: nodes, BootDisk: disk, LocalSSDs: p.LocalSSDs})
	}
	for _, p := range s.places() {
		machine, _ := p.Machine(s.MachineTypes)
		pool := capacity.Pool{
			Name:    p.Name,
			Machine: machine,
			Spot:    p.Spot,
			Node:    s.nodeRoom(p),
			Nodes:   p.MostNodes(),
			Spare:   p.SpareNodes,
			Pods:    s.mostPodsOn(p),
			Rungs:   s.rungs(p),
			Queued:  len(s.queuedRoles(p.Name)) > 0,
		}
		for _, one := range p.Listed() {
			upgrade := s.upgrade(one, p.Name)
			machine, _ := one.Machine(s.MachineTypes)
			pool.Upgrade = pool.Upgrade.And(upgrade)
			use(one, machine, one.MostNodes()+upgrade.Additional)
		}
		pools = append(pools, pool)
	}
	for _, p := range leaving {
		machine, _ := p.Machine(s.MachineTypes)
		use(p, machine, p.MostNodes())
	}
	plan := capacity.NewPlan(pools, s.price)
	plan.NoRegion = s.region() == ""
	plan.Trainings = s.trainings(plan.Pools)
	if !s.existing() {
		plan.Quotas = capacity.Quotas(s.Cluster.Region, usage, s.createdDisks())
		plan.Ranges = s.Cluster.Network.ranges(s.addresses())
	}
	return plan
}

// upgrade describes an upgrade of a pool, which roles name in nodePool. Others upgrade the pools of an existing cluster.
func (s *Stack) upgrade(p Pool, nodePool string) capacity.Upgrade {
	if s.existing() {
		return capacity.Upgrade{}
	}
	upgrade := capacity.Upgrade{Additional: *p.Upgrade.MaxSurge, Unavailable: *p.Upgrade.MaxUnavailable, Rounds: p.Rounds()}
	for i := range s.Jobs {
		here := func(role NamedRole) bool { return role.NodePool == nodePool && role.Replicas > 0 }
		if !s.Jobs[i].Suspend && slices.ContainsFunc(s.Jobs[i].Roles(), here) {
			upgrade.Jobs = append(upgrade.Jobs, s.Jobs[i].Name)
		}
	}
	return upgrade
}

// price returns the price in the stack file, or else Google's list price.
func (s *Stack) price(machine gcp.Machine, spot bool) (capacity.Price, bool) {
	price := s.MachineTypes[machine.Type].HourlyPrice
	if spot {
		price = s.MachineTypes[machine.Type].SpotHourlyPrice
	}
	if price > 0 {
		return capacity.Price{Hourly: price}, true
	}
	listed, known := machine.ListPrice(s.region(), spot)
	return capacity.Price{Hourly: listed, Listed: true}, known
}

// region returns the region of the cluster, or "" if the stack file does not have it. gcloud
// names the context of an existing cluster gke_PROJECT_LOCATION_CLUSTER.
func (s *Stack) region() string {
	if !s.existing() {
		return s.Cluster.Region
	}
	parts := strings.Split(s.Cluster.Existing.Context, "_")
	if len(parts) != 4 || parts[0] != "gke" {
		return ""
	}
	if words := strings.Split(parts[2], "-"); len(words) == 3 {
		return words[0] + "-" + words[1] // of a zone, like us-central1-a
	}
	return parts[2]
}

// trainings returns the running jobs, with what the stack file expects of them, as far as it does.
func (s *Stack) trainings(pools []capacity.PoolPlan) []capacity.Training {
	var trainings []capacity.Training
	for i := range s.Jobs {
		job := &s.Jobs[i]
		if job.Suspend {
			continue
		}
		failures, cost, known := 0.0, 0.0, true
		for _, pool := range pools {
			replicas := replicasOn(job, pool.Name)
			if replicas == 0 {
				continue
			}
			if hours := s.hoursBetweenFailures(pool); hours > 0 {
				failures += float64(min(replicas, pool.Nodes)) / hours
			}
			if known = known && pool.HourlyCost != nil; known {
				cost += *pool.HourlyCost
			}
		}
		training := capacity.Training{
			Job:        job.Name,
			Checkpoint: float64(job.CheckpointSeconds) / 3600,
			Restart:    float64(job.RestartSeconds) / 3600,
		}
		if job.Partial() {
			training.Kept = capacity.GuessedKept
		}
		if failures > 0 {
			training.BetweenFailures = 1 / failures
		}
		if known {
			training.HourlyCost = &cost
		}
		trainings = append(trainings, training)
	}
	return trainings
}

// replicasOn returns the number of a job's replicas on a pool.
func replicasOn(job *Job, pool string) int {
	replicas := 0
	for _, role := range job.Roles() {
		if role.NodePool == pool {
			replicas += role.Replicas
		}
	}
	return replicas
}

// hoursBetweenFailures returns how long the least reliable machine of a pool lives, in hours, or 0 if that is not known.
func (s *Stack) hoursBetweenFailures(pool capacity.PoolPlan) (least float64) {
	for _, rung := range pool.Rungs {
		described := s.MachineTypes[rung.Machine.Type]
		hours := described.HoursBetweenFailures
		if rung.Spot {
			hours = described.SpotHoursBetweenFailures
		}
		if least == 0 || hours > 0 && hours < least {
			least = hours
		}
	}
	return least
}

// rungs returns the pools of a list, or a pool alone.
func (s *Stack) rungs(p Pool) []capacity.Rung {
	var rungs []capacity.Rung
	for _, one := range p.Listed() {
		machine, _ := one.Machine(s.MachineTypes)
		rungs = append(rungs, capacity.Rung{
			Machine: machine, Spot: one.Spot, Node: s.nodeRoom(one), Least: one.leastNodes(), Most: one.MostNodes()})
	}
	return rungs
}

// nodeRoom returns the resources of a node that are free for the pods assigned to its pool, on the smallest node of a list.
func (s *Stack) nodeRoom(p Pool) capacity.Resources {
	if len(p.listed) > 0 {
		return s.smallest(p.listed)
	}
	machine, _ := p.Machine(s.MachineTypes)
	room := capacity.Allocatable(machine)
	room.Pods = int64(p.MaxPodsPerNode)
	room.EphemeralBytes = 1 << 60 // the stack file does not describe the disks of existing pools
	if !s.existing() {
		_, room.EphemeralBytes = capacity.EphemeralStorage(p.Disk.SizeGB, p.LocalSSDs)
	}
	room = room.Minus(capacity.NodeAgents)
	if p.GPU != nil {
		room.GPUs = int64(p.GPU.Count)
		if s.NVIDIADriver.Installer != InstallerManaged {
			room = room.Minus(capacity.DriverInstaller)
		}
	}
	if s.PEDL.hostsAgents(p) {
		room = room.Minus(PodRequests(s.PEDL.Agent.Resources))
	}
	return room
}

// mostPodsOn returns the pods that a pool must hold at the same time. Queued jobs run one after another if there is
// no room for more, so these are the pods of the largest of them, and all pods that wait in no queue.
func (s *Stack) mostPodsOn(p Pool) []capacity.Pods {
	most, needed := s.podsOn(p.Name, nil), 0
	for _, job := range s.queued() {
		pods := s.podsOn(p.Name, job)
		pool := capacity.Pool{Node: s.nodeRoom(p), Pods: pods, Rungs: s.rungs(p)}
		if slices.ContainsFunc(pool.Pods, func(p capacity.Pods) bool { return pool.Holds(p) == 0 }) {
			return pods
		}
		if n := pool.Needed(); n > needed {
			most, needed = pods, n
		}
	}
	return most
}

// podsOn returns the pods that are assigned to a pool, with the replicas of one queued job at most. None has no pod.
func (s *Stack) podsOn(pool string, queued *Job) []capacity.Pods {
	var pods []capacity.Pods
	for _, kind := range Kinds() {
		pods = append(pods, s.rolePodsOn(pool, kind, queued)...)
	}
	pods = append(pods, s.natsServersOn(pool)...)
	if s.SystemPoolName() == pool {
		pods = append(pods, s.systemPods()...)
	}
	pods = append(pods, s.pedlPodsOn(pool)...)
	return slices.DeleteFunc(pods, func(p capacity.Pods) bool { return p.Count == 0 })
}

// rolePodsOn returns the replicas of one role on a pool, grouped by size: of the jobs that wait in
// no queue, and of a queued one.
func (s *Stack) rolePodsOn(pool string, kind Kind, queued *Job) []capacity.Pods {
	var groups podGroups
	for i := range s.Jobs {
		job := &s.Jobs[i]
		if role := kind.Of(job); role.NodePool == pool && !job.Suspend && (job.Queue == "" || job == queued) {
			sidecar, _ := job.GCSFuseSidecar(kind)
			requests := PodRequests(role.Resources).Plus(sidecar)
			groups.add(job.Name, capacity.Pods{Count: role.Replicas, Requests: requests, Priority: kind.Priority.Value})
		}
	}
	return groups.named(kind.Field + " of ")
}

// natsServersOn returns the NATS servers on a pool, grouped by size. Servers that must each
// have a node of their own within their cluster are a group per cluster.
func (s *Stack) natsServersOn(pool string) []capacity.Pods {
	var groups podGroups
	for _, c := range s.NATSClusters() {
		if c.NodePool == pool {
			groups.add(c.Job, capacity.Pods{Count: c.Size, Requests: c.Requests(), Priority: PriorityNATS.Value, Apart: c.AntiAffinity})
		}
	}
	if len(s.Jobs) > 1 {
		return groups.named("NATS server of ")
	}
	for i := range groups.pods {
		groups.pods[i].Name = "NATS server"
	}
	return groups.pods
}

// podGroups collects pods of the same size, with the jobs that they belong to.
type podGroups struct {
	pods []capacity.Pods
	jobs [][]string
}

func (g *podGroups) add(job string, pods capacity.Pods) {
	i := slices.IndexFunc(g.pods, func(p capacity.Pods) bool { return !p.Apart && !pods.Apart && p.Requests == pods.Requests })
	if i < 0 {
		g.pods, g.jobs = append(g.pods, pods), append(g.jobs, []string{job})
		return
	}
	g.pods[i].Count += pods.Count
	g.jobs[i] = append(g.jobs[i], job)
}

// named names each group by its first job.
func (g *podGroups) named(prefix string) []capacity.Pods {
	for i, jobs := range g.jobs {
		g.pods[i].Name = prefix + jobs[0]
		if len(jobs) > 1 {
			g.pods[i].Name += fmt.Sprintf(" and %d more", len(jobs)-1)
		}
	}
	return g.pods
}

// systemPods returns the pods of the system pool that a stack file does not mention.
func (s *Stack) systemPods() []capacity.Pods {
	oneIf := map[bool]int{true: 1}
	jobs := func(of func(Job) bool) int {
		return len(slices.DeleteFunc(slices.Clone(s.Jobs), func(j Job) bool { return !of(j) }))
	}
	// The completion of a JobSet serves its metrics, too.
	withGateway := func(j Job) bool { return j.Engine == EngineJobSet && j.EnableMetrics }
	operator := func(j Job) bool { return j.Engine == EngineOperator }
	return []capacity.Pods{
		capacity.ClusterAgents,
		{Name: "NATS operator", Count: 1, Requests: capacity.NATSOperator},
		{Name: "PERSIA operator", Count: oneIf[s.UsesOperator()], Requests: capacity.PERSIAOperator},
		{Name: "JobSet controller", Count: oneIf[s.InstallsJobSet()], Requests: capacity.JobSetController},
		{Name: "Kueue", Count: oneIf[s.InstallsKueue()], Requests: capacity.Kueue},
		{Name: "provisioner", Count: oneIf[s.AsksForNodes()], Requests: capacity.Provisioner},
		{Name: "metrics gateway", Count: jobs(func(j Job) bool { return j.EnableMetrics && !withGateway(j) }), Requests: capacity.MetricsGateway},
		{Name: Completion, Count: jobs(func(j Job) bool { return !withGateway(j) && !operator(j) }), Requests: capacity.Completion},
		{Name: "completion with metrics gateway", Count: jobs(withGateway), Requests: capacity.CompletionWithGateway},
		{Name: "completion by PERSIA's operator", Count: jobs(operator), Requests: capacity.OperatorCompletion},
	}
}

// pedlPodsOn returns PEDL's pods on a pool. nodeRoom subtracts the agents.
func (s *Stack) pedlPodsOn(pool string) []capacity.Pods {
	if s.PEDL == nil {
		return nil
	}
	var pods []capacity.Pods
	if s.PEDL.NodePool == pool {
		pods = append(pods, capacity.Pods{Name: "PEDL master", Count: 1, Requests: PodRequests(s.PEDL.Resources)})
		if s.PEDL.Postgres.External == nil {
			pods = append(pods, capacity.Pods{Name: "PEDL database", Count: 1, Requests: PodRequests(s.PEDL.Postgres.Resources)})
		}
	}
	if check := s.PEDL.SupportCheck; check != nil && check.NodePool == pool {
		pods = append(pods, capacity.Pods{Name: "PEDL support check", Count: 1, Requests: capacity.PEDLSupportCheck})
	}
	return pods
}

// createdDisks returns the disks that the stack creates for volumes. Compute Engine counts a regional disk in both
// zones.
func (s *Stack) createdDisks() []capacity.Disk {
	var disks []capacity.Disk
	for _, v := range s.StoredVolumes() {
		if d := v.PersistentDisk; d != nil && d.Create != nil {
			disks = append(disks, slices.Repeat([]capacity.Disk{{Type: d.Create.Type, GB: int(v.SizeGiB())}}, len(d.Zones))...)
		}
	}
	return disks
}
