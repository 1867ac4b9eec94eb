package config

import (
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// natsVariables are those by which PERSIA finds NATS: that of today, and that of
// older releases.
var natsVariables = []string{"PERSIA_NATS_URL", "PERSIA_NATS_IP"}

// dropOwnNATS removes from the jobs what the program sets itself: the address of
// the stack's own NATS. A manifest has it as it is beside a job's pods, and without
// a password.
func (s *Stack) dropOwnNATS() {
	own := func(e corev1.EnvVar) bool {
		return slices.Contains(natsVariables, e.Name) && e.ValueFrom == nil && s.NATS.answers(e.Value)
	}
	for i := range s.Jobs {
		job := &s.Jobs[i]
		job.Env = slices.DeleteFunc(job.Env, own)
		for _, role := range job.roles() {
			role.Env = slices.DeleteFunc(role.Env, own)
		}
	}
}

// answers reports whether a URL leads to the stack's NATS.
func (n *NATS) answers(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "nats" || u.User != nil || u.Port() != "" && u.Port() != "4222" {
		return false
	}
	short := n.Name + "." + NATSNamespace
	return slices.Contains([]string{n.Name, short, short + ".svc", short + ".svc.cluster.local"}, u.Hostname())
}
