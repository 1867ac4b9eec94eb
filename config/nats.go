package config

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
)

// longestNATSName leaves room for what the NATS operator makes of it: service
// NAME-mgmt and pods NAME-0.
const longestNATSName = 50

// mostPayload is the largest max_payload that nats-server accepts, in bytes.
const mostPayload = 64 << 20

// oldestNATS is the oldest release of nats-server that a stack may ask for.
var oldestNATS = version.MustParseSemantic("2.2.0")

var natsVersionForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`)

func (v *validator) nats() {
	path, n := field.NewPath(natsKey), v.stack.NATS
	v.name(path.Child("name"), n.Name, validation.IsDNS1035Label)
	v.atMost(longestNATSName, path.Child("name"), n.Name, "so that the names of its services and pods fit")
	if n.Size < 1 {
		v.invalid(path.Child("size"), n.Size, "must be at least 1; write the number of servers")
	}
	v.natsVersion(path.Child("version"), n.Version)
	if n.MaxPayload < 1 || n.MaxPayload > mostPayload {
		v.invalid(path.Child("maxPayload"), n.MaxPayload, "must be from 1 to %d bytes, as nats-server accepts no more; leave it out for 52428800, which PERSIA needs", mostPayload)
	}
	v.assignment(path, "a NATS server", n.NodePool, n.Resources, append(v.stack.poolNames(), v.stack.SystemPoolName()))
	v.noGPUs(path.Child("resources"), n.Resources)
}

func (v *validator) natsVersion(path *field.Path, text string) {
	if !natsVersionForm.MatchString(text) {
		v.invalid(path, text, "must be a release of nats-server as MAJOR.MINOR.PATCH in quotes, like \"2.10.22\"")
		return
	}
	if version.MustParseSemantic(text).LessThan(oldestNATS) {
		v.invalid(path, text, "must be %s or later; leave it out for the default", oldestNATS)
	}
}
