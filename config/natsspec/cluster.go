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
	// ClientPort is the port of servers for clients.
	ClientPort = 4222
	// OperatorName is the name of the operator's objects in the namespace.
	OperatorName = "nats-operator"
)

// Job describes a training job to the rules of NATS.
type Job struct {
	Name      string
	Overrides Overrides
	At        *field.Path // the path of Overrides
	Processes int         // the number of processes that connect
}

// Cluster is a NATS cluster that the stack runs.
type Cluster struct {
	Settings
	// Job is the only job that uses the cluster. It is empty in a stack without jobs, whose
	// cluster is for other clients.
	Job string

	at      *field.Path
	own     Overrides
	clients int
}

// Clusters returns the NATS cluster of each job, in their order, or one cluster if there are
// no jobs. PERSIA's subjects do not contain the name of the job, so two jobs that shared a
// NATS would train on each other's data. The cluster of the first job has the name in the
// settings, which PERSIA has published.
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

// with returns the settings with the overrides of a job, and a default name.
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

// IsOwn reports whether the job overrides settings.
func (c *Cluster) IsOwn() bool {
	o := c.own
	return o.Name != "" || o.Size != 0 || o.NodePool != "" || o.Resources.Limits != nil || o.Resources.Requests != nil ||
		o.MaxPayload != 0 || o.MaxPending != 0 || o.MaxConnections != 0 || o.WriteDeadline != ""
}

// At returns the path of the job's overrides.
func (c *Cluster) At() *field.Path { return c.at }

// pathOf returns the path of a setting: below the job's overrides if own, or else below the
// settings.
func (c *Cluster) pathOf(settings *field.Path, name string, own bool) *field.Path {
	if own {
		return c.at.Child(name)
	}
	return settings.Child(name)
}

// NamePath returns the path of the name.
func (c *Cluster) NamePath(settings *field.Path) *field.Path {
	return c.pathOf(settings, "name", c.own.Name != "")
}

// PoolPath returns the path of the node pool.
func (c *Cluster) PoolPath(settings *field.Path) *field.Path {
	return c.pathOf(settings, "nodePool", c.own.NodePool != "")
}

// ResourcesPath returns the path of the resources of a server.
func (c *Cluster) ResourcesPath(settings *field.Path) *field.Path {
	return c.pathOf(settings, "resources", c.own.Resources.Limits != nil || c.own.Resources.Requests != nil)
}

// Host returns the DNS name of the Service for clients.
func (s *Settings) Host() string {
	return fmt.Sprintf("%s.%s.svc", s.Name, Namespace)
}

// firstServer returns the DNS name of the first server for other servers.
func (s *Settings) firstServer() string {
	return fmt.Sprintf("%s-1.%s-mgmt.%s.svc", s.Name, s.Name, Namespace)
}

// Requests returns the resource requests of a server's pod.
func (s *Settings) Requests() capacity.Resources {
	r := pod.Requests(s.Resources)
	if s.ConfigReload {
		r = r.Plus(capacity.NATSReloader)
	}
	return r
}

// Answers reports whether a URL without credentials leads to the cluster with a name.
func Answers(name, text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "nats" || u.User != nil || u.Port() != "" && u.Port() != strconv.Itoa(ClientPort) {
		return false
	}
	short := name + "." + Namespace
	return slices.Contains([]string{name, short, short + ".svc", short + ".svc.cluster.local"}, u.Hostname())
}
