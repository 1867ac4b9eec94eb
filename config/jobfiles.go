package config

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// warnOfCheckpoints warns if nn-workers and embedding parameter servers have no directory in which both can write a
// checkpoint that outlives them, or embedding workers could not load it.
func (c *jobChecker) warnOfCheckpoints(j *Job) {
	const roles = "nnWorker and embeddingParameterServer can write and embeddingWorker can read"
	// On the nodes of an existing cluster, a directory may be a file server's.
	own, onNode := j.ownCheckpoints(), c.stack.existing() || c.stack.hasOneNode()
	if j.NNWorker.checkpoints == "" && !slices.ContainsFunc(own, func(e variable) bool { return j.share(e.Value, onNode) }) {
		c.Warn(j.at.Child("mounts"), "there is no volume that %s at one path (a claim, or nfs), so the job keeps no checkpoint "+
			"and begins anew when it loses a replica; add a mount without readOnly to the job", roles)
	}
	for _, e := range own {
		if !strings.Contains(e.Value, "$(") && !j.share(e.Value, onNode) {
			c.Warn(e.at.Child("value"), "%s is below no volume that %s, so checkpoints are lost with the containers, "+
				"or cannot be loaded; write a path below a mountPath", e.Value, roles)
		}
	}
}

// checkRecovery checks that servers can keep their memory, and that the coordinator sees which checkpoints there are.
func (c *jobChecker) checkRecovery(j *Job) {
	at := j.at.Child("recovery")
	switch own := j.ownCheckpoints(); {
	case !j.Partial():
	case j.Engine == EngineOperator:
		c.Invalid(at, j.Recovery, "must be full with engine: operator, which starts no replica again; choose another engine")
	case j.Script != nil:
		c.Invalid(at, j.Recovery, "must be full with script: servers of releases without persia-launcher cannot load a part of a checkpoint")
	case len(own) > 0:
		c.Invalid(at, j.Recovery, "must be full with %s in %s: the coordinator does not know those checkpoints; "+
			"remove the variable", EnvOwnCheckpoints, c.PathOf(own[0].at))
	case j.NNWorker.checkpoints == "" || j.EmbeddingParameterServer.checkpoints == "":
		c.Invalid(at, j.Recovery, "must be full without checkpoints; add a mount without readOnly to the job")
	}
}

// sameCheckpoints warns of jobs with one directory of checkpoints: each of them removes what it takes for its own old
// checkpoints, and resumes from the newest one.
func (c *jobChecker) sameCheckpoints(jobs []Job) {
	first := map[Folder]*Job{}
	for i := range jobs {
		j := &jobs[i]
		for _, e := range j.ownCheckpoints() {
			at := j.NNWorker.at(e.Value).Folder
			if at.Path = ""; at.Claim == "" {
				continue
			}
			if other := first[at]; other != nil && other != j {
				c.Warn(e.at.Child("value"), "%s is also the directory of %s, so each of the two jobs removes the checkpoints of "+
					"the other; write a directory for each job", e.Value, c.PathOf(other.At()))
			}
			first[at] = j
		}
	}
}

// ownCheckpoints returns the variables with a directory of checkpoints that the job chooses itself.
func (j *Job) ownCheckpoints() []variable {
	return slices.DeleteFunc(j.variables(), func(e variable) bool { return e.Name != EnvOwnCheckpoints || e.Value == "" })
}

// variable is an environment variable with its path.
type variable struct {
	at *field.Path
	corev1.EnvVar
}

// variables returns the variables of the job and of each role.
func (j *Job) variables() []variable {
	var all []variable
	add := func(path *field.Path, env []corev1.EnvVar) {
		for i, e := range env {
			all = append(all, variable{path.Index(i), e})
		}
	}
	add(j.at.Child("env"), j.Env)
	for _, role := range j.Roles() {
		add(j.at.Child(role.Field, "env"), role.Env)
	}
	return all
}

// warnOfVariables warns of variables that lead a job to the NATS of another one.
func (c *jobChecker) warnOfVariables(j *Job) {
	for _, e := range j.variables() {
		if slices.Contains(natsVariables, e.Name) {
			c.Warn(e.at.Child("name"), "%s leads the job to another NATS than its own, and two jobs on one NATS train on "+
				"each other's data; remove the variable", e.Name)
		} else if address := closed(e.Value, j.Name); address != "" {
			c.Warn(e.at.Child("value"), "%s is closed to the job, whose network policy opens DNS, port 443, and its own NATS; "+
				"allow the port with a policy of your own for pods with the label persia_job=%s", address, j.Name)
		}
	}
}

var (
	// hostPort matches an address in a list of addresses or of URLs.
	hostPort = regexp.MustCompile(`^(?:([a-z][a-z0-9+.-]*)://)?(?:[^@/]*@)?([a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*)(?::([0-9]+))?(?:/.*)?$`)
	// wellKnownPorts are the ports of schemes in URLs without a port.
	wellKnownPorts = map[string]string{
		"amqp": "5672", "ftp": "21", "hdfs": "8020", "http": "80", "kafka": "9092", "ldap": "389", "mongodb": "27017", "mysql": "3306",
		"postgres": "5432", "postgresql": "5432", "redis": "6379", "ssh": "22", "thrift": "9083", "zookeeper": "2181",
	}
)

// closed returns the first address in the value of a variable that the network policy of a job closes, or "". An
// address without a scheme has a dot and a port.
func closed(value, job string) string {
	for text := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(",; ", r) }) {
		parts := hostPort.FindStringSubmatch(text)
		if parts == nil {
			continue
		}
		scheme, host, port := parts[1], parts[2], cmp.Or(parts[3], wellKnownPorts[parts[1]])
		address, err := netip.ParseAddr(host)
		own := host == "localhost" || err == nil && address.IsLoopback() || strings.HasPrefix(host, job+"-")
		named := err == nil || strings.Contains(host, ".") && strings.ContainsFunc(host, unicode.IsLetter)
		if (scheme != "" || named) && port != "" && port != "443" && port != "53" && !own {
			return host + ":" + port
		}
	}
	return ""
}
