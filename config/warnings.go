package config

import (
	"fmt"
	"path"
	"strings"
)

// mostNATS is how many servers NATS is commonly run with at most.
const mostNATS = 9

// Warnings are what a valid stack may not have meant.
func (s *Stack) Warnings() []string {
	warnings := s.volumeWarnings()
	warnings = append(warnings, s.natsWarnings()...)
	warnings = append(warnings, s.engineWarnings()...)
	warnings = append(warnings, s.pedlWarnings()...)
	return append(warnings, s.jobWarnings()...)
}

func (s *Stack) jobWarnings() []string {
	var warnings []string
	for i := range s.Jobs {
		job := &s.Jobs[i]
		if loose := job.looseImages(); len(loose) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: the image of %s has the tag latest, and pods that start later may run another one; write image with a digest, like persiaml/persia-cpu-runtime@sha256:…",
				s.pathOf(job.at), and(loose)))
		}
		if job.mountsHostPaths() {
			warnings = append(warnings, fmt.Sprintf("%s: hostPath volumes are directories of the nodes, and the namespace of all jobs admits privileged pods for them; use a volume of %s, by mounts", s.pathOf(job.at.Child("volumes")), volumesKey))
		}
	}
	return warnings
}

// looseImages are the roles whose image may be another one tomorrow. Upstream's
// own, which a role has by default, are of that kind.
func (j *Job) looseImages() []string {
	var roles []string
	for _, r := range j.roles() {
		if isLoose(r.Image) {
			roles = append(roles, r.field)
		}
	}
	return roles
}

// isLoose reports whether an image may be another one tomorrow.
func isLoose(image string) bool {
	_, tag, tagged := strings.Cut(path.Base(image), ":")
	return !strings.Contains(image, "@") && (!tagged || tag == "latest")
}
