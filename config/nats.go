package config

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/jobspec"
	"persia/config/natsspec"
)

// NATSClusters are the NATS clusters of the jobs, in their order, or one without a job.
func (s *Stack) NATSClusters() []natsspec.Cluster {
	jobs := make([]natsspec.Job, len(s.Jobs))
	for i := range s.Jobs {
		job := &s.Jobs[i]
		jobs[i] = natsspec.Job{Name: job.Name, Overrides: job.NATS, At: job.At().Child("nats"), Processes: job.Processes()}
	}
	return s.NATS.Clusters(jobs)
}

func (v *validator) nats() {
	path, clusters := field.NewPath(natsKey), v.stack.NATSClusters()
	natsspec.Check(v.Problems, path, v.stack.NATS, clusters)
	v.natsPool(path, v.stack.NATS)
	for _, cluster := range clusters {
		if cluster.IsOwn() {
			v.natsPool(cluster.At(), cluster.Settings)
		}
	}
}

// natsPool checks that a server fits a node of its pool.
func (v *validator) natsPool(path *field.Path, settings natsspec.Settings) {
	v.assignment(path, "a NATS server", settings.NodePool, settings.Resources, append(v.stack.poolNames(), v.stack.SystemPoolName()))
}

// natsServersOn are the servers that are assigned to a pool, those of the same size
// together, unless each has to have a node without another of its cluster.
func (s planner) natsServersOn(pool string) []capacity.Pods {
	var pods []capacity.Pods
	var jobs [][]string
	for _, c := range s.NATSClusters() {
		if c.NodePool != pool {
			continue
		}
		same := func(p capacity.Pods) bool { return !p.Apart && !c.AntiAffinity && p.Requests == c.Requests() }
		i := slices.IndexFunc(pods, same)
		if i < 0 {
			i = len(pods)
			pods = append(pods, capacity.Pods{Requests: c.Requests(), Priority: jobspec.PriorityNATS.Value, Apart: c.AntiAffinity})
			jobs = append(jobs, nil)
		}
		pods[i].Count += c.Size
		jobs[i] = append(jobs[i], c.Job)
	}
	for i := range pods {
		pods[i].Name = "NATS server"
		if len(s.Jobs) > 1 {
			pods[i].Name += " of " + someJobs(jobs[i])
		}
	}
	return pods
}

// natsWarnings are about numbers of servers that are not usual, each said once.
func (s warner) natsWarnings() []string {
	var warnings []string
	said := map[string]bool{}
	for _, c := range s.NATSClusters() {
		at := natsKey
		if c.Size != s.NATS.Size {
			at = c.At().String()
		}
		if said[at] {
			continue
		}
		said[at] = true
		if c.Size > 1 && c.Size%2 == 0 {
			warnings = append(warnings, fmt.Sprintf("%s.size: %d is even; use an odd number of servers, because %d are as available", at, c.Size, c.Size-1))
		}
		if c.Size > mostNATS {
			warnings = append(warnings, fmt.Sprintf("%s.size: %d servers keep %d routes among them; use %d or fewer, with more resources each",
				at, c.Size, c.Size*(c.Size-1)/2, mostNATS))
		}
	}
	return warnings
}

// natsVariables are those by which PERSIA finds NATS: that of today, and that of
// older releases.
var natsVariables = []string{"PERSIA_NATS_URL", "PERSIA_NATS_IP"}

// dropOwnNATS removes from the jobs what the program sets itself: the address of the
// job's NATS, as the job's manifest may have it, by the published name or its own.
func (s resolver) dropOwnNATS() {
	if len(s.Jobs) == 0 {
		return
	}
	for i, cluster := range s.NATSClusters() {
		job := &s.Jobs[i]
		own := func(e corev1.EnvVar) bool {
			return slices.Contains(natsVariables, e.Name) && e.ValueFrom == nil &&
				(natsspec.Answers(cluster.Name, e.Value) || natsspec.Answers(s.NATS.Name, e.Value))
		}
		job.Env = slices.DeleteFunc(job.Env, own)
		for _, role := range job.Roles() {
			role.Env = slices.DeleteFunc(role.Env, own)
		}
	}
}
