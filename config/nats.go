package config

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"

	"persia/capacity"
)

// NATSNamespace is the namespace of the NATS operator and of the servers.
const NATSNamespace = "nats-io"

// natsOperator is the name of the operator's objects.
const natsOperator = "nats-operator"

// longestNATSName leaves room for what the NATS operator makes of it: service
// NAME-mgmt and pods NAME-0.
const longestNATSName = 50

// oldestNATS is the oldest release of nats-server that a stack may ask for.
var oldestNATS = version.MustParseSemantic("2.2.0")

var natsVersionForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`)

// natsImageForm is a repository, with or without a registry, and no tag.
var natsImageForm = regexp.MustCompile(`^([a-z0-9.-]+(:[0-9]+)?/)?[a-z0-9._/-]+$`)

// Host is the name that clients know the servers by.
func (n *NATS) Host() string {
	return fmt.Sprintf("%s.%s.svc", n.Name, NATSNamespace)
}

// serverHost is the name that other servers know the first server by.
func (n *NATS) serverHost() string {
	return fmt.Sprintf("%s-1.%s-mgmt.%s.svc", n.Name, n.Name, NATSNamespace)
}

// requests is what the scheduler counts of a server's pod.
func (n *NATS) requests() capacity.Resources {
	r := requests(n.Resources)
	if *n.ConfigReload {
		r = r.Plus(capacity.NATSReloader)
	}
	return r
}

// nats checks the settings that all clusters of the stack share, and then each cluster.
func (v *validator) nats() {
	path, n := field.NewPath(natsKey), &v.stack.NATS
	v.natsSettings(path, n)
	v.natsVersion(path.Child("version"), n.Version)
	if !natsImageForm.MatchString(n.Image) {
		v.invalid(path.Child("image"), n.Image, "must be an image reference without a tag, like nats or registry.example.com/nats; the tag is version")
	}
	oneOf(v, path.Child("operatorScope"), n.OperatorScope, ScopeNamespace, ScopeCluster)
	v.natsUsers(path.Child("users"), n.Users)
	v.natsUsersFit(path.Child("users"), n.Users)
	v.natsClusters()
}

// natsSettings checks what a job may have otherwise than the stack.
func (v *validator) natsSettings(path *field.Path, n *NATS) {
	if n.Size < 1 {
		v.invalid(path.Child("size"), n.Size, "must be at least 1; write the number of servers")
	}
	v.assignment(path, "a NATS server", n.NodePool, n.Resources, append(v.stack.poolNames(), v.stack.SystemPoolName()))
	v.noGPUs(path.Child("resources"), "a NATS server", n.Resources)
	v.natsLimits(path, n)
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
