package natsspec

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/pod"
)

const (
	// Namespace is the namespace of the NATS operator and of the servers.
	Namespace = "nats-io"
	// ClientPort is where clients reach a server.
	ClientPort = 4222
	// OperatorName is the name of the operator's objects there.
	OperatorName = "nats-operator"
)

// Job is a training job as far as its NATS is concerned.
type Job struct {
	Name string
	// Overrides stand at a path.
	Overrides Overrides
	At        *field.Path
	// Processes is the number of processes that connect.
	Processes int
}

// Cluster is a NATS cluster that the stack runs.
type Cluster struct {
	Settings
	// Job is the job whose roles meet there, and nobody else. In a stack without
	// jobs it is empty: then other clients do.
	Job string

	at      *field.Path
	own     Overrides
	clients int
}

// Clusters are those of the jobs, in their order. PERSIA's subjects carry no name of a
// job, and two jobs on one NATS would train on each other's data. The first job has
// the published name, that of the settings. A stack without jobs has one cluster.
func (s Settings) Clusters(jobs []Job) []Cluster {
	if len(jobs) == 0 {
		return []Cluster{{Settings: s}}
	}
	clusters := make([]Cluster, len(jobs))
	for i, job := range jobs {
		name := s.Name
		if i > 0 {
			name = job.Name + "-nats"
		}
		clusters[i] = Cluster{
			Settings: s.with(job.Overrides, name),
			Job:      job.Name,
			at:       job.At,
			own:      job.Overrides,
			clients:  job.Processes,
		}
	}
	return clusters
}

// with are the settings with what a job has otherwise.
func (s Settings) with(o Overrides, name string) Settings {
	s.Name = cmp.Or(o.Name, name)
	s.Size = cmp.Or(o.Size, s.Size)
	s.NodePool = cmp.Or(o.NodePool, s.NodePool)
	if o.Resources.Limits != nil || o.Resources.Requests != nil {
		s.Resources = o.Resources
	}
	if o.MaxPayload != 0 && s.MaxPending == pendingMessages*s.MaxPayload {
		s.MaxPending = pendingMessages * o.MaxPayload
	}
	s.MaxPayload = cmp.Or(o.MaxPayload, s.MaxPayload)
	s.MaxPending = cmp.Or(o.MaxPending, s.MaxPending)
	s.MaxConnections = cmp.Or(o.MaxConnections, s.MaxConnections)
	s.WriteDeadline = cmp.Or(o.WriteDeadline, s.WriteDeadline)
	return s
}

// IsOwn reports whether the job has settings of its own.
func (c *Cluster) IsOwn() bool {
	o := c.own
	return o.Name != "" || o.Size != 0 || o.NodePool != "" || o.Resources.Limits != nil || o.Resources.Requests != nil ||
		o.MaxPayload != 0 || o.MaxPending != 0 || o.MaxConnections != 0 || o.WriteDeadline != ""
}

// At is where the settings of the job's own stand.
func (c *Cluster) At() *field.Path { return c.at }

// PathOf is where a setting is written: with the job, if that has its own, or with the
// settings, whose path is given.
func (c *Cluster) PathOf(settings *field.Path, name string, own bool) *field.Path {
	if own {
		return c.at.Child(name)
	}
	return settings.Child(name)
}

// NamePath is where the name is written, or the settings that it comes from.
func (c *Cluster) NamePath(settings *field.Path) *field.Path {
	return c.PathOf(settings, "name", c.own.Name != "")
}

// ResourcesPath is where the resources of a server are written, or the settings that
// they come from.
func (c *Cluster) ResourcesPath(settings *field.Path) *field.Path {
	return c.PathOf(settings, "resources", c.own.Resources.Limits != nil || c.own.Resources.Requests != nil)
}

// Host is the name that clients know the servers by.
func (s *Settings) Host() string {
	return fmt.Sprintf("%s.%s.svc", s.Name, Namespace)
}

// firstServer is the name that other servers know the first one by.
func (s *Settings) firstServer() string {
	return fmt.Sprintf("%s-1.%s-mgmt.%s.svc", s.Name, s.Name, Namespace)
}

// Requests is what the scheduler counts of a server's pod.
func (s *Settings) Requests() capacity.Resources {
	r := pod.Requests(s.Resources)
	if s.ConfigReload {
		r = r.Plus(capacity.NATSReloader)
	}
	return r
}

// Answers reports whether a URL without credentials leads to the cluster of a name.
func Answers(name, text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "nats" || u.User != nil || u.Port() != "" && u.Port() != strconv.Itoa(ClientPort) {
		return false
	}
	short := name + "." + Namespace
	return slices.Contains([]string{name, short, short + ".svc", short + ".svc.cluster.local"}, u.Hostname())
}
