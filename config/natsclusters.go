package config

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
)

// NATSCluster is a NATS cluster that the stack runs.
type NATSCluster struct {
	NATS
	// Job is the job whose roles meet there, and nobody else. In a stack without
	// jobs it is empty: then other clients do.
	Job string

	// at is where the job has settings of its own, and own are those. clients is the
	// number of processes of the job.
	at      *field.Path
	own     JobNATS
	clients int
}

// NATSClusters are those of the jobs, in their order. PERSIA's subjects carry no name
// of a job, and two jobs on one NATS would train on each other's data. The first job
// has the published name, that of persia:nats.
func (s *Stack) NATSClusters() []NATSCluster {
	if len(s.Jobs) == 0 {
		return []NATSCluster{{NATS: s.NATS, at: field.NewPath(natsKey)}}
	}
	clusters := make([]NATSCluster, len(s.Jobs))
	for i := range s.Jobs {
		job := &s.Jobs[i]
		name := s.NATS.Name
		if i > 0 {
			name = job.Name + "-nats"
		}
		clusters[i] = NATSCluster{
			NATS:    s.NATS.with(job.NATS, name),
			Job:     job.Name,
			at:      job.at.Child("nats"),
			own:     job.NATS,
			clients: job.processes(),
		}
	}
	return clusters
}

// with is n with what a job has otherwise.
func (n NATS) with(job JobNATS, name string) NATS {
	n.Name = cmp.Or(job.Name, name)
	n.Size = cmp.Or(job.Size, n.Size)
	n.NodePool = cmp.Or(job.NodePool, n.NodePool)
	if job.Resources.Limits != nil || job.Resources.Requests != nil {
		n.Resources = job.Resources
	}
	if job.MaxPayload != 0 && n.MaxPending == pendingMessages*n.MaxPayload {
		n.MaxPending = pendingMessages * job.MaxPayload
	}
	n.MaxPayload = cmp.Or(job.MaxPayload, n.MaxPayload)
	n.MaxPending = cmp.Or(job.MaxPending, n.MaxPending)
	n.MaxConnections = cmp.Or(job.MaxConnections, n.MaxConnections)
	n.WriteDeadline = cmp.Or(job.WriteDeadline, n.WriteDeadline)
	return n
}

// isWritten reports whether a job has settings of its own.
func (n *JobNATS) isWritten() bool {
	return n.Name != "" || n.Size != 0 || n.NodePool != "" || n.Resources.Limits != nil || n.Resources.Requests != nil ||
		n.MaxPayload != 0 || n.MaxPending != 0 || n.MaxConnections != 0 || n.WriteDeadline != ""
}

// processes is the number of a job's processes that connect to NATS.
func (j *Job) processes() int {
	processes := j.NNWorker.Replicas * (j.NNWorker.NprocPerNode - 1)
	for _, role := range j.roles() {
		processes += role.Replicas
	}
	return processes
}

// natsClusters checks what is each cluster's own: what a job has written itself, its
// name, its clients and whether the certificates are valid for it.
func (v *validator) natsClusters() {
	clusters := v.stack.NATSClusters()
	names := make([]string, len(clusters))
	for i := range clusters {
		c := &clusters[i]
		names[i] = c.Name
		v.natsName(c)
		if c.own.isWritten() {
			v.natsSettings(c.at, &c.NATS)
		}
		if c.Size >= 1 && c.MaxConnections >= 1 && c.MaxConnections < c.clients {
			v.invalid(c.path("maxConnections", c.own.MaxConnections != 0), c.MaxConnections,
				"the job %s has %d processes, and all of them may come to one server; write at least that many", c.Job, c.clients)
		}
		v.certificate(field.NewPath(natsKey, "tls", "clients"), c.TLS.Clients, c.Host())
		v.certificate(field.NewPath(natsKey, "tls", "routes"), c.TLS.Routes, c.serverHost())
	}
	unique(names, func(i, first int) {
		v.duplicate(clusters[i].at.Child("name"), names[i], "is that of the NATS of %s; each job has one of its own", clusters[first].Job)
	})
}

// natsName checks the name of a cluster, whoever has chosen it.
func (v *validator) natsName(c *NATSCluster) {
	at := c.path("name", c.own.Name != "")
	v.name(at, c.Name, validation.IsDNS1035Label)
	v.atMost(longestNATSName, at, c.Name, "so that the names of its services and pods fit")
	if c.Name == natsOperator {
		v.invalid(at, c.Name, "is that of the NATS operator, in the same namespace; choose another name")
	}
}

// path is where a setting of a cluster is written: with the job, if that has its own.
func (c *NATSCluster) path(name string, own bool) *field.Path {
	if own {
		return c.at.Child(name)
	}
	return field.NewPath(natsKey, name)
}

// natsUsersFit refuses users where PERSIA's client cannot log in as one.
func (v *validator) natsUsersFit(path *field.Path, users []NATSUser) {
	if len(users) == 0 {
		return
	}
	for i := range v.stack.Jobs {
		if job := &v.stack.Jobs[i]; !job.NATS.Credentials {
			v.forbidden(path, "would keep the job %s out, as PERSIA's client takes no credentials from a URL; remove users, since the network policy lets no other pod in anyway, or write %s: true if the images of the job have a client that takes them",
				job.Name, job.at.Child("nats", "credentials"))
		}
	}
}

// natsServersOn are the servers that are assigned to a pool, those of the same size
// together, unless each has to have a node without another of its cluster.
func (s *Stack) natsServersOn(pool string) []capacity.Pods {
	var pods []capacity.Pods
	var jobs [][]string
	for _, c := range s.NATSClusters() {
		if c.NodePool != pool {
			continue
		}
		same := func(p capacity.Pods) bool { return !p.Apart && !c.AntiAffinity && p.Requests == c.requests() }
		i := slices.IndexFunc(pods, same)
		if i < 0 {
			i = len(pods)
			pods = append(pods, capacity.Pods{Requests: c.requests(), Priority: PriorityNATS.Value, Apart: c.AntiAffinity})
			jobs = append(jobs, nil)
		}
		pods[i].Count += c.Size
		jobs[i] = append(jobs[i], c.Job)
	}
	for i := range pods {
		pods[i].Name = "NATS server"
		if len(s.Jobs) > 1 {
			pods[i].Name += " of " + someJobs(jobs[i])
		}
	}
	return pods
}

// natsWarnings are about numbers of servers that are not usual, each said once.
func (s *Stack) natsWarnings() []string {
	var warnings []string
	said := map[string]bool{}
	for _, c := range s.NATSClusters() {
		at := natsKey
		if c.Size != s.NATS.Size {
			at = c.at.String()
		}
		if said[at] {
			continue
		}
		said[at] = true
		if c.Size > 1 && c.Size%2 == 0 {
			warnings = append(warnings, fmt.Sprintf("%s.size: %d is even; an odd number of servers is usual, since %d stay as available", at, c.Size, c.Size-1))
		}
		if c.Size > mostNATS {
			warnings = append(warnings, fmt.Sprintf("%s.size: %d servers keep %d routes, each to each other; %d or less are usual, with more resources each",
				at, c.Size, c.Size*(c.Size-1)/2, mostNATS))
		}
	}
	return warnings
}
