package effects

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"persia/gcp"
)

// NATS is a NATS cluster.
type NATS struct {
	// Size is the number of servers.
	Size int
	// settings are the settings of a NatsCluster by their paths, and replacedBy the paths whose
	// change replaces all servers. The latter are nil for a cluster in the state.
	settings   map[string]string
	replacedBy []string
	// Pod has the node selector of the servers.
	Pod corev1.PodSpec
}

// AddNATS adds a NatsCluster. A change below one of the paths replaces all of its servers.
func (s Stack) AddNATS(name string, object any, replacedBy []string) {
	outputs, _ := plain(object).(map[string]any)
	s.addNATS(outputs)
	servers := s.NATS[name]
	servers.replacedBy = replacedBy
	s.NATS[name] = servers
}

// addNATS adds a NatsCluster of the state.
func (s Stack) addNATS(outputs map[string]any) {
	name, _ := output(outputs, []string{"metadata", "name"}).(string)
	size, _ := output(outputs, []string{"spec", "size"}).(float64)
	servers := NATS{Size: int(size), settings: map[string]string{}}
	flatten(servers.settings, "spec", outputs["spec"])
	if on := servers.settings["spec.pod.nodeSelector."+gcp.LabelNodePool]; on != "" {
		servers.Pod.NodeSelector = map[string]string{gcp.LabelNodePool: on}
	}
	s.NATS[name] = servers
}

// flatten writes all values in an object by their paths.
func flatten(into map[string]string, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			flatten(into, path+"."+name, inner)
		}
	case []any:
		for i, inner := range value {
			flatten(into, fmt.Sprintf("%s.%d", path, i), inner)
		}
	default:
		into[path] = text(value)
	}
}

// run says how many servers of a job run.
func (n NATS) run(job string) string {
	if n.Size == 1 {
		return fmt.Sprintf("The only NATS server of the job %s runs", job)
	}
	return fmt.Sprintf("The %d NATS servers of the job %s run", n.Size, job)
}

// brokers describes the effects on the NATS servers of jobs that go on.
func brokers(before, after Stack) []string {
	if after.Replaced != nil {
		return nil // all of them go
	}
	var effects []string
	for _, job := range before.Running() {
		name := before.Jobs[job].nats()
		was, had := before.NATS[name]
		is, stays := after.NATS[name]
		if !had || !stays || after.Jobs[job].Replicas() == 0 {
			continue // which the effects of the job say
		}
		changes, replaced := was.changes(is)
		say := func(format string, args ...any) {
			effects = append(effects, fmt.Sprintf("persia:nats: in the NATS cluster %s, %s: ", name, strings.Join(changes, ", "))+fmt.Sprintf(format, args...))
		}
		switch {
		case replaced:
			say("this replaces %s at once; %s", count(was.Size, "server"), after.withoutNATS(job, after.Jobs[job]))
		case was.settings["spec.version"] != is.settings["spec.version"] && was.Size == 1:
			say("the operator replaces the only server; %s", after.withoutNATS(job, after.Jobs[job]))
		case was.settings["spec.version"] != is.settings["spec.version"]:
			say("the operator replaces the %d servers one at a time; the clients of each reconnect to another, and messages in transit are lost. The job %s goes on", was.Size, job)
		case is.Size < was.Size:
			say("the operator removes %s, one at a time; the clients of each reconnect to another, and messages in transit are lost. The job %s goes on", count(was.Size-is.Size, "server"), job)
		}
	}
	return effects
}

// changes says which settings differ, and whether one of them replaces all servers.
func (n NATS) changes(is NATS) (changes []string, replaced bool) {
	paths := maps.Clone(n.settings)
	maps.Copy(paths, is.settings)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if n.settings[path] == is.settings[path] {
			continue
		}
		changes = append(changes, fmt.Sprintf("%s was %s and is now %s", path, written(n.settings[path]), written(is.settings[path])))
		replaced = replaced || slices.ContainsFunc(is.replacedBy, func(by string) bool { return path == by || strings.HasPrefix(path, by+".") })
	}
	return changes, replaced
}

// withoutNATS describes a job while no server of its NATS answers.
func (s Stack) withoutNATS(name string, job Job) string {
	if job.ByOperator {
		return fmt.Sprintf("the processes of the job %s lose their connections, and nothing restarts them together", name)
	}
	seconds := cmp.Or(job.nnWorkers().variable("PERSIA_NATS_SECONDS"), "30")
	return fmt.Sprintf("if no server answers for %s seconds, the attempt of the job %s ends. The next one begins when NATS answers, and trains %s", seconds, name, s.start(job))
}

// nats returns the name of the NATS cluster of a job.
func (j Job) nats() string {
	for _, entry := range j.nnWorkers().container().Env {
		switch {
		case entry.Name != "PERSIA_NATS_URL":
		case entry.ValueFrom != nil && entry.ValueFrom.SecretKeyRef != nil:
			return strings.TrimSuffix(entry.ValueFrom.SecretKeyRef.Name, "-client")
		default:
			_, host, _ := strings.Cut(entry.Value, "://")
			name, _, _ := strings.Cut(host, ".")
			return name
		}
	}
	return ""
}
