package natsspec

import (
	"regexp"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"

	"persia/config/check"
	"persia/config/pod"
)

// longestName leaves room for the names that the NATS operator derives: the Service NAME-mgmt
// and the pods NAME-1, NAME-2 and so on.
const longestName = 50

// oldestVersion is the oldest release of nats-server that the program supports.
var oldestVersion = version.MustParseSemantic("2.2.0")

var versionForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`)

// Check checks the settings that all clusters of a stack share, and each cluster. The path is
// of the settings. It does not check whether servers fit the nodes of their pools.
func Check(p *check.Problems, path *field.Path, s Settings, clusters []Cluster) {
	checkOwn(p, path, s)
	checkVersion(p, path.Child("version"), s.Version)
	if named, err := reference.ParseNormalizedNamed(s.Image); err != nil || !reference.IsNameOnly(named) {
		p.Invalid(path.Child("image"), s.Image, "must be an image reference without a tag, like nats or registry.example.com/nats; the tag is version")
	}
	checkUsers(p, path.Child("users"), s.Users)
	for _, c := range clusters {
		checkCluster(p, path, c, len(s.Users) > 0)
	}
	check.Unique(clusters, func(c Cluster) string { return c.Name }, func(i, first int, name string) {
		p.Duplicate(clusters[i].at.Child("name"), name, "is already used by the NATS of %s; give each job its own", clusters[first].Job)
	})
}

// mostServers is many times the largest published cluster of PERSIA, which has 60 servers.
const mostServers = 1000

// checkOwn checks the settings that a job can override.
func checkOwn(p *check.Problems, path *field.Path, s Settings) {
	if s.Size < 1 {
		p.Invalid(path.Child("size"), s.Size, "must be at least 1; write the number of servers")
	}
	if s.Size > mostServers {
		p.Invalid(path.Child("size"), s.Size, "must be at most %d, because each server of NATS connects to every other; write the number of servers", mostServers)
	}
	pod.NoGPUs(p, path.Child("resources"), "a NATS server", s.Resources)
	checkLimits(p, path, s)
}

// checkCluster checks one cluster: the job's overrides, the name, the number of clients, and
// whether the certificates are valid for it.
func checkCluster(p *check.Problems, path *field.Path, c Cluster, users bool) {
	name := c.NamePath(path)
	p.Name(name, c.Name, validation.IsDNS1035Label)
	p.AtMost(longestName, name, c.Name, "so that the names of its services and pods fit")
	if c.Name == OperatorName {
		p.Invalid(name, c.Name, "is the name of the NATS operator in the same namespace; choose another name")
	}
	if c.IsOwn() {
		checkOwn(p, c.at, c.Settings)
	}
	if c.Size >= 1 && c.MaxConnections >= 1 && c.MaxConnections < c.clients {
		p.Invalid(c.pathOf(path, "maxConnections", c.own.MaxConnections != 0), c.MaxConnections,
			"the job %s has %d processes, and all of them may come to one server; write at least that many", c.Job, c.clients)
	}
	if users && c.Job != "" && !c.own.Credentials {
		p.Forbidden(path.Child("users"), "would lock out the job %s, because PERSIA's client cannot use credentials in a URL; remove users (the network policy admits no other pods), or write %s: true if the client in the job's images can",
			c.Job, c.at.Child("credentials"))
	}
	checkCertificate(p, path.Child("tls", "clients"), c.TLS.Clients, c.Host())
	checkCertificate(p, path.Child("tls", "routes"), c.TLS.Routes, c.firstServer())
}

func checkVersion(p *check.Problems, path *field.Path, text string) {
	if !versionForm.MatchString(text) {
		p.Invalid(path, text, "must be a version of nats-server as MAJOR.MINOR.PATCH in quotes, like \"2.10.22\"")
		return
	}
	if version.MustParseSemantic(text).LessThan(oldestVersion) {
		p.Invalid(path, text, "must be %s or later; omit it for the default", oldestVersion)
	}
}
