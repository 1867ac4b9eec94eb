package effects

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"persia/workload/queue"
)

// Queue is the queue of a team.
type Queue struct {
	// reclaims says when other teams stop jobs on nodes that the team has borrowed.
	reclaims string
	// quotas are the amounts of the resources that the team owns, by the pool and the resource.
	quotas map[string]map[string]string
}

// AddQueue adds a ClusterQueue.
func (s Stack) AddQueue(object any) {
	outputs, _ := plain(object).(map[string]any)
	s.addQueue(outputs)
}

// addQueue adds a ClusterQueue of the state.
func (s Stack) addQueue(outputs map[string]any) {
	settings := map[string]string{}
	flatten(settings, "", outputs)
	added := Queue{reclaims: settings[".spec.preemption.reclaimWithinCohort"], quotas: map[string]map[string]string{}}
	groups, _ := output(outputs, []string{"spec", "resourceGroups"}).([]any)
	for _, group := range groups {
		flavors, _ := output(group, []string{"flavors"}).([]any)
		for _, flavor := range flavors {
			name := fmt.Sprint(output(flavor, []string{"name"}))
			pool := strings.TrimPrefix(name, settings[".spec.cohortName"]+"-")
			added.quotas[pool] = map[string]string{}
			resources, _ := output(flavor, []string{"resources"}).([]any)
			for _, of := range resources {
				added.quotas[pool][fmt.Sprint(output(of, []string{"name"}))] = fmt.Sprint(output(of, []string{"nominalQuota"}))
			}
		}
	}
	s.Queues[settings[".metadata.labels."+queue.TeamLabel]] = added
}

// queues says which teams with running jobs own less than before. Kueue stops no job for that alone.
func queues(before, after Stack) []string {
	if after.Replaced != nil {
		return nil
	}
	var effects []string
	for _, team := range slices.Sorted(maps.Keys(before.Queues)) {
		is, stays := after.Queues[team]
		var jobs []string
		for _, name := range before.Running() {
			if before.Jobs[name].Queue == team && after.Jobs[name].Queue == team && after.Jobs[name].Replicas() > 0 {
				jobs = append(jobs, name)
			}
		}
		if !stays || len(jobs) == 0 {
			continue // which the effects of the jobs say
		}
		borrowed := "a job of another team that owns the nodes may stop it"
		if is.reclaims == "Never" {
			borrowed = "no job of another team stops it"
		}
		for _, pool := range slices.Sorted(maps.Keys(before.Queues[team].quotas)) {
			if less := fewer(before.Queues[team].quotas[pool], is.quotas[pool]); len(less) > 0 {
				effects = append(effects, fmt.Sprintf("persia:queue.teams: the team %s owns less of the pool %s: %s. What is running goes on: %s. What it uses beyond that is borrowed: %s",
					team, pool, strings.Join(less, ", "), strings.Join(jobs, ", "), borrowed))
			}
		}
	}
	return effects
}

// fewer says which amounts of resources have become smaller.
func fewer(was, is map[string]string) []string {
	var less []string
	for _, name := range slices.Sorted(maps.Keys(was)) {
		had, err := resource.ParseQuantity(was[name])
		has, wrong := resource.ParseQuantity(is[name])
		if err == nil && (wrong != nil || has.Cmp(had) < 0) {
			less = append(less, fmt.Sprintf("%s was %s and is now %s", name, was[name], written(is[name])))
		}
	}
	return less
}
