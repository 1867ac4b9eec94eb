package config

import (
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// natsVariables are those by which PERSIA finds NATS: that of today, and that of
// older releases.
var natsVariables = []string{"PERSIA_NATS_URL", "PERSIA_NATS_IP"}

// dropOwnNATS removes from the jobs what the program sets itself: the address of the
// job's own NATS.
func (s *Stack) dropOwnNATS() {
	if len(s.Jobs) == 0 {
		return
	}
	for i, cluster := range s.NATSClusters() {
		job := &s.Jobs[i]
		own := func(e corev1.EnvVar) bool { return cluster.isOwnNATS(s.NATS.Name, e) }
		job.Env = slices.DeleteFunc(job.Env, own)
		for _, role := range job.roles() {
			role.Env = slices.DeleteFunc(role.Env, own)
		}
	}
}

// isOwnNATS reports whether a variable of a job has the address of its NATS, as the
// job's manifest may have it: by the published name or by its own, and without a
// password.
func (c *NATSCluster) isOwnNATS(published string, e corev1.EnvVar) bool {
	return slices.Contains(natsVariables, e.Name) && e.ValueFrom == nil &&
		(answers(c.Name, e.Value) || answers(published, e.Value))
}

// answers reports whether a URL leads to the NATS of a name.
func answers(name, text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "nats" || u.User != nil || u.Port() != "" && u.Port() != "4222" {
		return false
	}
	short := name + "." + NATSNamespace
	return slices.Contains([]string{name, short, short + ".svc", short + ".svc.cluster.local"}, u.Hostname())
}
