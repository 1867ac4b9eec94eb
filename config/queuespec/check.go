package queuespec

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// Context is the part of the stack file that queues depend on.
type Context struct {
	// Pools maps the node pools with roles of jobs that wait in a queue to their numbers of nodes,
	// without spare ones.
	Pools map[string]int
}

const (
	// mostTeams keeps the preview readable. Kueue has no limit.
	mostTeams = 100
	// mostPriority is the limit of Kubernetes for classes that users create.
	mostPriority = 1_000_000_000
	// defaultStartMinutes is the default in the tag of [Settings].
	defaultStartMinutes = 30
	// fewStartMinutes is our estimate of the time that a new node needs. Google documents none.
	fewStartMinutes = 10
	// mostStartMinutes is a day.
	mostStartMinutes = 24 * 60
)

// Check checks the queues of a stack file.
func (s Settings) Check(p *check.Problems, path *field.Path, context Context) {
	check.Range(p, path.Child("startMinutes"), s.StartMinutes, 1, mostStartMinutes, "")
	if s.StartMinutes > 0 && s.StartMinutes < fewStartMinutes && len(s.Teams) > 0 {
		p.Warn(path.Child("startMinutes"), "%d min is less than a new node with a GPU takes until its driver runs and its images are there, so jobs may release their nodes before they start; write %d or more", s.StartMinutes, fewStartMinutes)
	}
	if s.Existing && s.StartMinutes != defaultStartMinutes {
		p.Invalid(path.Child("startMinutes"), s.StartMinutes, "the cluster's own Kueue stops jobs after the times in its waitForPodsReady; remove it")
	}
	teams := path.Child("teams")
	if len(s.Teams) > mostTeams {
		p.Invalid(teams, len(s.Teams), "must be at most %d teams", mostTeams)
	}
	for i, team := range s.Teams {
		p.Name(teams.Index(i).Child("name"), team.Name, validation.IsDNS1123Label)
		team.checkNodes(p, teams.Index(i).Child("nodes"), context)
	}
	check.UniqueField(p, teams, "name", s.Teams, func(t Team) string { return t.Name }, "is already used by teams[%d]; give each team its own name")
	for name, nodes := range context.Pools {
		if owned := s.Nodes(name); owned > nodes {
			p.Invalid(teams, owned, "nodes of the pool %s belong to teams, but it has %d for queues; write a smaller number in nodes of a team", name, nodes)
		}
	}
	priorities := path.Child("priorities")
	for i, priority := range s.Priorities {
		p.Name(priorities.Index(i).Child("name"), priority.Name, validation.IsDNS1123Label)
		check.Range(p, priorities.Index(i).Child("value"), priority.Value, -mostPriority, mostPriority, "")
	}
	check.UniqueField(p, priorities, "name", s.Priorities, func(p Priority) string { return p.Name }, "is already used by priorities[%d]; give each priority its own name")
}

func (t Team) checkNodes(p *check.Problems, path *field.Path, context Context) {
	for _, pool := range slices.Sorted(maps.Keys(t.Nodes)) {
		if _, known := context.Pools[pool]; !known {
			p.Invalid(path.Key(pool), t.Nodes[pool], "no job that waits in a queue runs on the pool %s; %s", pool, remedy(context))
		}
		if t.Nodes[pool] < 0 {
			p.Invalid(path.Key(pool), t.Nodes[pool], "must not be negative; write 0 for a team that only borrows nodes")
		}
	}
}

func remedy(context Context) string {
	pools := slices.Sorted(maps.Keys(context.Pools))
	if len(pools) == 0 {
		return "write queue in a job with engine: jobset"
	}
	return "write one of " + check.Or(pools)
}

// Nodes returns the number of nodes of a pool that belong to teams.
func (s Settings) Nodes(pool string) int {
	owned := 0
	for _, team := range s.Teams {
		owned += team.Nodes[pool]
	}
	return owned
}

// TeamNames returns the names of the teams.
func (s Settings) TeamNames() []string {
	return check.Words(s.Teams, func(t Team) string { return t.Name })
}

// PriorityNames returns the names of the priorities.
func (s Settings) PriorityNames() []string {
	return check.Words(s.Priorities, func(p Priority) string { return p.Name })
}
