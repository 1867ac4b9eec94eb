// Package operatorspec defines PERSIA's own operator in a stack file: its settings and rules.
package operatorspec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/pod"
)

// Settings are the settings of PERSIA's own operator, which the stack runs if a job has `engine:
// operator`.
type Settings struct {
	// Image is an image with PERSIA's Python package, persia-k8s-utils on the path, and python3.
	// Required if the operator runs.
	Image string `json:"image,omitempty"`
}

// example is an image for messages.
const example = "REGION-docker.pkg.dev/PROJECT/REPOSITORY/training@sha256:…"

// Check checks settings. Used is whether the operator runs a job.
func (s Settings) Check(p *check.Problems, path *field.Path, used bool) {
	at := path.Child("image")
	switch {
	case s.Image == "" && used:
		p.Required(at, "write the image of PERSIA's operator by its digest, like %s: examples/training/Dockerfile builds one, and for upstream's `docker buildx imagetools inspect persiaml/persia-cpu-runtime` shows the digest", example)
	case s.Image == "":
	case pod.IsLoose(s.Image):
		p.Invalid(at, s.Image, "may be another image tomorrow, and its program creates pods; write a digest or the tag of a version, like %s", example)
	default:
		pod.Image(p, at, s.Image, example)
	}
}
