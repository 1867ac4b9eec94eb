package config

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/natsspec"
)

// NATSClusters returns the NATS cluster of each job, in their order, or one cluster if the
// stack has no jobs.
func (s *Stack) NATSClusters() []natsspec.Cluster {
	jobs := make([]natsspec.Job, len(s.Jobs))
	for i := range s.Jobs {
		job := &s.Jobs[i]
		jobs[i] = natsspec.Job{Name: job.Name, Overrides: job.NATS, At: job.At().Child("nats"), Processes: job.Processes()}
	}
	return s.NATS.Clusters(jobs)
}

func (s *Stack) checkNATS(p *check.Problems) {
	path, clusters := field.NewPath(natsKey), s.NATSClusters()
	natsspec.Check(p, path, s.NATS, clusters)
	pools := append(s.poolNames(), s.SystemPoolName())
	s.checkAssignment(p, path, "a NATS server", s.NATS.NodePool, s.NATS.Resources, pools)
	for _, cluster := range clusters {
		if cluster.IsOwn() {
			s.checkAssignment(p, cluster.At(), "a NATS server", cluster.NodePool, cluster.Resources, pools)
		}
	}
}

// natsVariables contain the address of NATS for PERSIA: the current name, and the name in older
// releases.
var natsVariables = []string{"PERSIA_NATS_URL", "PERSIA_NATS_IP"}

// dropNATSVariables removes the address of the job's own NATS from the variables of jobs,
// because the program sets it. Manifests have it, by the published name or the job's own.
func (s *Stack) dropNATSVariables() {
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
