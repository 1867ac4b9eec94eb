package config

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"

	"persia/capacity"
	"persia/config/input"
)

// NATS are the settings of each job's NATS cluster, which the job's `nats` overrides.
type NATS struct {
	// Name is the name of the NatsCluster and of the Service for clients.
	Name string `json:"name,omitempty" default:"persia-nats-service"`
	// Size is the number of servers.
	Size int `json:"size,omitempty" default:"1" max:"1000"`
	// Version is the version of nats-server, and the tag of `image`.
	Version string `json:"version,omitempty" default:"2.12.12"`
	// Image is the image of nats-server, without a tag.
	Image string `json:"image,omitempty" default:"nats"`
	// MaxPayload is the size of the largest message in bytes, at most 67108864.
	MaxPayload int `json:"maxPayload,omitempty" default:"52428800" max:"67108864"`
	// Resources are the requests and limits of one server. Default: {cpu: 500m, memory: 1Gi}.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// NodePool is the node pool of the servers. Default: the system pool.
	NodePool string `json:"nodePool,omitempty"`
	// AntiAffinity runs each server on a different node.
	AntiAffinity bool `json:"antiAffinity,omitempty"`
	// Metrics adds a Prometheus exporter to each server, on port 7777.
	Metrics bool `json:"metrics,omitempty"`
}

// NATSOverrides are the settings of one job's NATS.
type NATSOverrides struct {
	// Name is the name of the NatsCluster and of the Service for clients. Default: the name in
	// persia:nats for the first job, and JOB-nats for the others.
	Name string `json:"name,omitempty"`
	// Size is the number of servers.
	Size int `json:"size,omitempty" max:"1000"`
	// NodePool is the node pool of the servers.
	NodePool string `json:"nodePool,omitempty"`
	// Resources are the requests and limits of one server.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// MaxPayload is the size of the largest message in bytes, at most 67108864.
	MaxPayload int `json:"maxPayload,omitempty" max:"67108864"`
}

// defaultCPU and defaultMemory are for one server, with memory for two slow clients.
var defaultCPU, defaultMemory = resource.MustParse("500m"), resource.MustParse("1Gi")

// resolve fills in defaults that depend on other settings.
func (s *NATS) resolve(site *Site) {
	s.NodePool = cmp.Or(s.NodePool, site.SystemPoolName())
	if s.Resources.Limits == nil && s.Resources.Requests == nil {
		s.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: defaultCPU, corev1.ResourceMemory: defaultMemory}
	}
}

const (
	// JobNamespace is the namespace of jobs.
	JobNamespace = "persia"
	// NATSNamespace is the namespace of the NATS operator and of the servers.
	NATSNamespace = "nats-io"
	// NATSPort is the port of servers for clients.
	NATSPort = 4222
	// NATSOperatorName is the name of the operator's objects in the namespace.
	NATSOperatorName = "nats-operator"
)

// NATSCluster is a NATS cluster that the stack runs.
type NATSCluster struct {
	NATS
	// Job is the only job that uses the cluster. It is empty in a stack without jobs, whose
	// cluster is for other clients.
	Job string

	at  *field.Path
	own NATSOverrides
}

// NATSClusters returns the NATS cluster of each job, in their order, or one cluster if there are no jobs. PERSIA's
// subjects do not contain the name of the job, so two jobs that shared a NATS would train on each other's data. The
// cluster of the first job has the name in the settings, which PERSIA has published.
func (s *Stack) NATSClusters() []NATSCluster {
	if len(s.Jobs) == 0 {
		return []NATSCluster{{NATS: s.NATS}}
	}
	clusters := make([]NATSCluster, len(s.Jobs))
	for i := range s.Jobs {
		job, name := &s.Jobs[i], s.NATS.Name
		if i > 0 {
			name = job.Name + "-nats"
		}
		clusters[i] = NATSCluster{NATS: s.NATS.with(job.NATS, name), Job: job.Name, at: job.at.Child("nats"), own: job.NATS}
	}
	return clusters
}

// with returns the settings with the overrides of a job, and a default name.
func (s NATS) with(o NATSOverrides, name string) NATS {
	s.Name = cmp.Or(o.Name, name)
	s.Size = cmp.Or(o.Size, s.Size)
	s.NodePool = cmp.Or(o.NodePool, s.NodePool)
	if o.Resources.Limits != nil || o.Resources.Requests != nil {
		s.Resources = o.Resources
	}
	s.MaxPayload = cmp.Or(o.MaxPayload, s.MaxPayload)
	return s
}

// Host returns the DNS name of the Service for clients.
func (s *NATS) Host() string { return fmt.Sprintf("%s.%s.svc", s.Name, NATSNamespace) }

// MaxPending is the number of bytes that a server buffers for a slow client before it disconnects
// the client. The default of nats-server, 64 MiB, holds only one message of PERSIA.
func (s *NATS) MaxPending() int { return 4 * s.MaxPayload }

// Requests returns the resource requests of a server's pod.
func (s *NATS) Requests() capacity.Resources { return PodRequests(s.Resources) }

// natsAnswers reports whether a URL without credentials leads to the cluster with a name.
func natsAnswers(name, text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "nats" || u.User != nil || u.Port() != "" && u.Port() != strconv.Itoa(NATSPort) {
		return false
	}
	short := name + "." + NATSNamespace
	return slices.Contains([]string{name, short, short + ".svc", short + ".svc.cluster.local"}, u.Hostname())
}

// natsVariables contain the address of NATS for PERSIA: the current name, and the name in older releases.
var natsVariables = []string{EnvNATS, EnvOlderNATS}

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
				(natsAnswers(cluster.Name, e.Value) || natsAnswers(s.NATS.Name, e.Value))
		}
		job.Env = slices.DeleteFunc(job.Env, own)
		for _, role := range job.Roles() {
			role.Env = slices.DeleteFunc(role.Env, own)
		}
	}
}

// longestNATSName leaves room for the names that the NATS operator derives: the Service NAME-mgmt
// and the pods NAME-1, NAME-2 and so on.
const longestNATSName = 50

// oldestVersion is the oldest release of nats-server that the program supports.
var oldestVersion = version.MustParseSemantic("2.2.0")

// safeVersions are the oldest releases of 2.11 and 2.12 with the fixes of the advisories of 2026, see
// https://advisories.nats.io.
var safeVersions = [2]*version.Version{version.MustParseSemantic("2.11.15"), version.MustParseSemantic("2.12.6")}

// checkNATS checks the settings that all clusters share, and each cluster.
func (s *Stack) checkNATS(p *input.Problems) {
	path, pools := field.NewPath(natsKey), append(s.poolNames(), s.SystemPoolName())
	switch v, err := version.ParseSemantic(s.NATS.Version); {
	case err != nil || v.String() != s.NATS.Version || v.LessThan(oldestVersion):
		p.Invalid(path.Child("version"), s.NATS.Version,
			"must be %s or later, as MAJOR.MINOR.PATCH in quotes; omit it for the default", oldestVersion)
	case v.LessThan(safeVersions[0]) || v.Minor() == safeVersions[1].Minor() && v.LessThan(safeVersions[1]):
		p.Warn(path.Child("version"), "%s has known vulnerabilities, which %s and %s fix (advisories.nats.io); "+
			"omit it for the default", v, safeVersions[0], safeVersions[1])
	}
	if named, err := reference.ParseNormalizedNamed(s.NATS.Image); err != nil || !reference.IsNameOnly(named) {
		p.Invalid(path.Child("image"), s.NATS.Image,
			"must be an image reference without a tag, like nats or registry.example.com/nats; the tag is version")
	}
	check := func(at *field.Path, settings NATS) {
		checkPayload(p, at, settings)
		s.checkAssignment(p, at.Child("resources"), at.Child("nodePool"), "a NATS server", settings.NodePool, settings.Resources, pools, false)
	}
	check(path, s.NATS)
	clusters := s.NATSClusters()
	for _, c := range clusters {
		name := path.Child("name")
		if c.own.Name != "" {
			name = c.at.Child("name")
		}
		input.Form(p, name, "name", c.Name)
		p.AtMost(longestNATSName, name, c.Name, "so that the names of its services and pods fit")
		if c.Name == NATSOperatorName {
			p.Invalid(name, c.Name, "is the name of the NATS operator in the same namespace; choose another name")
		}
		if !reflect.ValueOf(c.own).IsZero() {
			check(c.at, c.NATS)
		}
	}
	input.Unique(p, field.NewPath(jobsKey), "nats.name", input.Words(clusters, func(c NATSCluster) string { return c.Name }))
}

const (
	// persiaPayload is the size of the largest message of PERSIA, in bytes.
	persiaPayload = 50 << 20
	// serverProcess is the memory of a server without messages.
	serverProcess = 64 * capacity.MiB
)

// checkPayload checks the size of messages, and that a server has memory for what it buffers for one slow client, for
// a message from a client, and for a message from another server. It cannot know how many slow clients there will be.
func checkPayload(p *input.Problems, path *field.Path, s NATS) {
	if s.MaxPayload < persiaPayload {
		p.Warn(path.Child("maxPayload"), "%d bytes are less than the %d that a message of PERSIA may have, and NATS disconnects "+
			"a client that sends more; omit it", s.MaxPayload, persiaPayload)
	}
	at := path.Child("resources", "limits").Key("memory")
	memory, limited := s.Resources.Limits[corev1.ResourceMemory]
	if !limited {
		at, memory = path.Child("resources", "requests").Key("memory"), s.Resources.Requests[corev1.ResourceMemory]
	}
	needed := resource.NewQuantity(serverProcess+int64(s.MaxPending())+2*int64(s.MaxPayload), resource.BinarySI)
	if memory.Sign() > 0 && memory.Cmp(*needed) < 0 {
		p.Invalid(at, memory.String(), "is less than %dMi, which a server with one slow client needs: six messages of maxPayload, "+
			"and 64Mi; increase it", (needed.Value()+capacity.MiB-1)/capacity.MiB)
	}
}
