package config

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
)

// Queue are the queues in which jobs with `engine: jobset` wait until there is room for all of their pods.
type Queue struct {
	// Existing uses the cluster's JobSet and Kueue. By default the stack installs both.
	Existing bool `json:"existing,omitempty"`
	// Teams are groups of users. Each has a queue, and may use what other teams leave idle.
	Teams []Team `json:"teams,omitempty" unique:"name"`
	// Priorities are names for numbers. The name default is for jobs without one, and is 0 unless you set it.
	Priorities []QueuePriority `json:"priorities,omitempty" unique:"name"`
	// WithinTeam chooses which jobs stop for a waiting one of the same team: Never, LowerPriority, or
	// LowerOrNewerEqualPriority.
	WithinTeam string `json:"withinTeam,omitempty" default:"LowerPriority" enum:"Never,LowerPriority,LowerOrNewerEqualPriority"`
	// BetweenTeams says which jobs on borrowed nodes stop when the owner needs these: Never, LowerPriority, or Any.
	BetweenTeams string `json:"betweenTeams,omitempty" default:"Any" enum:"Never,LowerPriority,Any"`
	// StartMinutes is how long an admitted job may lack replicas. Then it releases its nodes and waits.
	StartMinutes int `json:"startMinutes,omitempty" default:"30" max:"1440"`
}

// Team is a group of users.
type Team struct {
	// Name is the name of the team and its queue.
	Name string `json:"name" form:"label"`
	// Nodes is the number of nodes that belong to the team, by node pool (of a list: the first). Default: an equal
	// share of the pools that no team names.
	Nodes map[string]int `json:"nodes,omitempty"`
}

// DefaultPriority is the name of the priority of jobs that write none.
const DefaultPriority = "default"

// resolve adds the default priority.
func (s *Queue) resolve() {
	if len(s.Teams) > 0 && !slices.Contains(s.PriorityNames(), DefaultPriority) {
		s.Priorities = append(s.Priorities, QueuePriority{Name: DefaultPriority})
	}
}

// QueuePriority is a name for a number. Jobs with a larger number come first.
type QueuePriority struct {
	// Name is the name that jobs write.
	Name string `json:"name" form:"label"`
	// Value is from -1000000000 to 1000000000.
	Value int `json:"value" min:"-1000000000" max:"1000000000"`
}

// Nodes returns the number of nodes of a pool that belong to teams. A list of pools has the name of the first.
func (s Queue) Nodes(pool string) int {
	owned := 0
	for _, team := range s.Teams {
		owned += team.Nodes[poolsIn(pool)[0]]
	}
	return owned
}

// TeamNames returns the names of the teams.
func (s Queue) TeamNames() []string {
	return input.Words(s.Teams, func(t Team) string { return t.Name })
}

// PriorityNames returns the names of the priorities.
func (s Queue) PriorityNames() []string {
	return input.Words(s.Priorities, func(p QueuePriority) string { return p.Name })
}

// QueuePools returns the names of the pools on which queued jobs run, each list as one.
func (s *Stack) QueuePools() []string {
	var names []string
	for _, pool := range s.places() {
		if len(s.queuedRoles(pool.Name)) > 0 {
			names = append(names, pool.Name)
		}
	}
	return names
}

// takesQueued reports whether a role may run on a pool with queued provisioning. GKE takes one pod
// set a request, and only Kueue stops a job whose nodes do not come.
func takesQueued(job *Job, role Kind) bool {
	return role.Name == KindNNWorker.Name && job.Engine == EngineJobSet && job.Queue != ""
}

// queuedRole is the size of a role of a queued job.
type queuedRole struct {
	// requests are the role's own, which Kueue counts, and sidecar what GKE adds to them.
	requests, sidecar capacity.Resources
}

func (s *Stack) queuedRoles(pool string) []queuedRole {
	var roles []queuedRole
	for _, job := range s.queued() {
		for _, role := range job.Roles() {
			if role.NodePool == pool && role.Replicas > 0 {
				sidecar, _ := job.GCSFuseSidecar(role.Kind)
				roles = append(roles, queuedRole{PodRequests(role.Resources), sidecar})
			}
		}
	}
	return roles
}

// Quotas returns a team's quota on each of [Stack.QueuePools].
func (s *Stack) Quotas(team Team) []capacity.Resources {
	var quotas []capacity.Resources
	for _, name := range s.QueuePools() {
		node, free := s.queueRoom(name)
		switch nodes, written := team.Nodes[poolsIn(name)[0]]; {
		case written:
			quotas = append(quotas, node.Times(nodes))
		case s.Queue.Nodes(name) > 0:
			quotas = append(quotas, capacity.Resources{})
		default:
			i := slices.IndexFunc(s.Queue.Teams, func(t Team) bool { return t.Name == team.Name })
			quotas = append(quotas, free.Share(i, len(s.Queue.Teams)))
		}
	}
	return quotas
}

// Uncounted returns the sum of the requests of all queued jobs for resources that the plan does not
// count, and for ephemeral storage: no quota of them keeps a job waiting.
func (s *Stack) Uncounted() corev1.ResourceList {
	counted := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, ResourceGPU}
	sums := corev1.ResourceList{}
	for _, job := range s.queued() {
		for _, role := range job.Roles() {
			asked := corev1.ResourceList{}
			maps.Copy(asked, role.Resources.Limits)
			maps.Copy(asked, role.Resources.Requests)
			for name, amount := range asked {
				if slices.Contains(counted, name) {
					continue
				}
				amount.Mul(int64(role.Replicas))
				sum := sums[name]
				sum.Add(amount)
				sums[name] = sum
			}
		}
	}
	return sums
}

// queueRoom returns the room for queued jobs on one node and on all nodes of a pool.
//
// Kueue adds up requests and knows no nodes. If all replicas on a pool are alike and nothing else
// runs there, the room is a multiple of their size, and all that fits the quota fits the nodes.
// Otherwise an admitted job may find its room in pieces, and waits again after startMinutes.
func (s *Stack) queueRoom(name string) (node, all capacity.Resources) {
	pool, _ := s.Pool(name)
	node = s.nodeRoom(pool)
	var others capacity.Resources
	for _, pods := range s.podsOn(name, nil) {
		others = others.Plus(pods.Requests.Times(pods.Count))
	}
	roles := s.queuedRoles(name)
	alike := !slices.ContainsFunc(roles, func(r queuedRole) bool { return r != roles[0] })
	if alike && others == (capacity.Resources{}) {
		holds := capacity.Pool{Node: node}.Holds(capacity.Pods{Requests: roles[0].requests.Plus(roles[0].sidecar)})
		node = roles[0].requests.Times(holds)
	}
	return node, node.Times(pool.MostNodes() - pool.SpareNodes).Minus(others)
}

// queueNodes returns how many nodes of a pool queued jobs may have: the others are spare, or pods in no
// queue need them.
func (s *Stack) queueNodes(name string) int {
	pool, _ := s.Pool(name)
	node, all := s.queueRoom(name)
	nodes := pool.MostNodes()
	for nodes > 0 && !node.Times(nodes).Within(all) {
		nodes--
	}
	return nodes
}

// checkQueues checks the queues, and that the nodes of all teams together hold each job: a job
// that they do not hold would wait forever.
func (s *Stack) checkQueues(p *input.Problems) {
	path := field.NewPath(queueKey)
	pools, remedy := map[string]int{}, "write queue in a job with engine: jobset"
	for _, name := range s.QueuePools() {
		first := poolsIn(name)[0]
		pools[first] = s.queueNodes(name)
		if owned := s.Queue.Nodes(name); owned > pools[first] {
			p.Invalid(path.Child("teams"), owned, "nodes of the pool %s belong to teams, but it has %d for queues; "+
				"write a smaller number in nodes of a team", name, pools[first])
		}
	}
	if len(pools) > 0 {
		remedy = "there are " + input.And(slices.Sorted(maps.Keys(pools)))
	}
	for i, team := range s.Queue.Teams {
		for pool, nodes := range team.Nodes {
			at := path.Child("teams").Index(i).Child("nodes").Key(pool)
			if _, known := pools[pool]; !known {
				p.Invalid(at, nodes, "no job that waits in a queue runs on the pool %s; %s", pool, remedy)
			}
			if nodes < 0 {
				p.Instead(at, nodes, 0, "must not be negative")
			}
		}
	}
	for i := range s.Jobs {
		s.checkQueue(p, &s.Jobs[i])
	}
	if s.Queue.Existing && !s.existing() {
		p.Invalid(path.Child("existing"), true, "a cluster that the stack creates has no Kueue; remove it")
	}
}

func (s *Stack) checkQueue(p *input.Problems, job *Job) {
	queue, priority := job.At().Child("queue"), job.At().Child("priority")
	if job.Queue == "" {
		if job.Priority != "" {
			p.Invalid(priority, job.Priority, "applies only to a job in a queue; write queue, or remove it")
		}
		return
	}
	switch {
	case !s.HasQueues():
		p.Invalid(queue, job.Queue, "the stack has no queues; write %s.teams", queueKey)
	case !slices.Contains(s.Queue.TeamNames(), job.Queue):
		p.Choose(p.Invalid(queue, job.Queue, "must be the name of a team in %s.teams", queueKey), queue, s.Queue.TeamNames())
	}
	if job.Engine != EngineJobSet {
		p.Invalid(queue, job.Queue,
			"requires engine: jobset, because only the pods of a JobSet are admitted together; write engine: jobset, or remove queue")
	}
	if job.Priority != "" && !slices.Contains(s.Queue.PriorityNames(), job.Priority) {
		p.Invalid(priority, job.Priority, "must be the name of a priority in %s.priorities", queueKey)
	}
}

// checkQuotas checks that the quotas of all teams hold each job. The stack must have no other problem.
func (s *Stack) checkQuotas(p *input.Problems) {
	quotas := map[string]capacity.Resources{}
	for _, team := range s.Queue.Teams {
		for i, quota := range s.Quotas(team) {
			quotas[s.QueuePools()[i]] = quotas[s.QueuePools()[i]].Plus(quota)
		}
	}
	for _, job := range s.queued() {
		for pool, quota := range quotas {
			var asks capacity.Resources
			for _, role := range job.Roles() {
				if role.NodePool == pool {
					asks = asks.Plus(PodRequests(role.Resources).Times(role.Replicas))
				}
			}
			// Kueue has no quota of pods, and no quota of ephemeral storage is too small.
			asks.Pods, asks.EphemeralBytes = 0, 0
			if !asks.Within(quota) {
				p.Invalid(job.At().Child("queue"), job.Queue, "the job would wait forever: the teams together have %s of the "+
					"pool %s, which do not hold its replicas; write a larger number in nodes of a team, or leave nodes out",
					input.Count(s.Queue.Nodes(pool), "node"), pool)
			}
		}
	}
}
