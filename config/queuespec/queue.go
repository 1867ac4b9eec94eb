// Package queuespec defines the queues of a stack file: their settings and rules.
package queuespec

import "slices"

// Settings are the queues in which jobs with `engine: jobset` wait until there is room for all of
// their pods. Kueue runs them. A stack without teams has no queues.
type Settings struct {
	// Existing says that the cluster already has JobSet and Kueue. By default the stack installs
	// both.
	Existing bool `json:"existing,omitempty"`
	// Teams are groups of users. Each has a queue, and may use what other teams leave idle.
	Teams []Team `json:"teams,omitempty"`
	// Priorities are the values of the names in a job's priority. The name default is for jobs
	// without a priority, and is 0 unless you change it.
	Priorities []Priority `json:"priorities,omitempty"`
	// WithinTeam determines which running jobs of a team stop for a waiting job of the same
	// team: Never, LowerPriority, or LowerOrNewerEqualPriority.
	WithinTeam string `json:"withinTeam,omitempty" default:"LowerPriority" enum:"Never,LowerPriority,LowerOrNewerEqualPriority"`
	// BetweenTeams determines which jobs on borrowed nodes stop when the team that owns the
	// nodes needs them: Never, LowerPriority, or Any.
	BetweenTeams string `json:"betweenTeams,omitempty" default:"Any" enum:"Never,LowerPriority,Any"`
	// StartMinutes is how long an admitted job may take until all of its replicas run, or run
	// again. Then it releases its nodes and waits.
	StartMinutes int `json:"startMinutes,omitempty" default:"30"`
}

// Team is a group of users.
type Team struct {
	// Name is the name of the team and its queue.
	Name string `json:"name"`
	// Nodes is the number of nodes that belong to the team, by node pool. Default: an equal share
	// of every pool.
	Nodes map[string]int `json:"nodes,omitempty"`
}

// DefaultPriority is the name of the priority of jobs that write none.
const DefaultPriority = "default"

// Resolve adds the default priority.
func (s *Settings) Resolve() {
	if len(s.Teams) > 0 && !slices.Contains(s.PriorityNames(), DefaultPriority) {
		s.Priorities = append(s.Priorities, Priority{Name: DefaultPriority})
	}
}

// Priority is a name for a number. Jobs with a larger number come first.
type Priority struct {
	// Name is the name that jobs write.
	Name string `json:"name"`
	// Value is from -1000000000 to 1000000000.
	Value int `json:"value"`
}
