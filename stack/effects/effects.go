// Package effects says which running pods an update ends, until when, and which training time or data that costs. It
// compares the resources in the state of the stack with what the program registers. Pulumi's preview shows which
// resources change.
package effects

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"persia/config"
	"persia/config/input"
	"persia/kube"
	"persia/workload/nats"
)

// Effect is what an update does to pods that run, or to stored data.
type Effect struct {
	// Text says it to people. It begins with the path of the change in the stack file.
	Text string
	// Ends are the workloads that lose pods: roles of jobs, like criteo-nn-worker, NATS clusters, and workloads of PEDL. Of
	// node pools that lose nodes, it has "pool NAME". Risks are what may lose some, because GKE chooses the nodes that go.
	Ends, Risks []string
}

// Text returns the effects as one text, or "" if there are none. A line begins with ! if pods end.
func Text(effects []Effect) string {
	if len(effects) == 0 {
		return ""
	}
	text := config.EffectsTitle + "\n"
	for _, effect := range effects {
		sign := "- "
		if len(effect.Ends) > 0 {
			sign = "! "
		}
		text += "\n" + sign + effect.Text
	}
	return text
}

// Of returns what an update does to a stack. Paths are the paths of jobs in the stack file, by name.
func Of(before, after State, paths map[string]string) []Effect {
	u := &update{before: before, after: after}
	u.cluster()
	for _, name := range slices.Sorted(maps.Keys(before.Trainings)) {
		u.job(paths[name], name)
	}
	if after.Replaced == nil { // all of them go
		u.brokers()
		u.pools()
	}
	u.pedl()
	u.volumes()
	return u.said
}

// update is an update of a stack.
type update struct {
	before, after State
	said          []Effect
}

// say adds an effect, whose text is one or more sentences.
func (u *update) say(path, format string, args ...any) *Effect {
	u.said = append(u.said, Effect{Text: path + ": " + fmt.Sprintf(format, args...)})
	return &u.said[len(u.said)-1]
}

// cluster says that the update replaces the cluster.
func (u *update) cluster() {
	if u.after.Replaced == nil {
		return
	}
	var changes []string
	for _, setting := range u.after.Replaced.Settings {
		changes = append(changes, fmt.Sprintf("%s was %s and is now %s", setting.Path, setting.Was, setting.Is))
	}
	gone := u.say(strings.Join(changes, ", "), "this deletes the cluster %s with everything in it, "+
		"and all of the stack moves to another cluster", u.after.Replaced.Cluster)
	gone.Ends = slices.Concat(slices.Collect(maps.Keys(u.before.Brokers)), slices.Collect(maps.Keys(u.before.pedl)))
	for name := range u.before.pools {
		gone.Ends = append(gone.Ends, "pool "+name)
	}
	for name, job := range u.before.Trainings {
		gone.Ends = append(gone.Ends, job.workloads(name)...)
	}
}

// job says what becomes of the training of a job, and of its checkpoints.
func (u *update) job(path, name string) {
	was := u.before.Trainings[name]
	is, stays := u.after.Trainings[name]
	had, has, start := u.before.checkpoints(was), u.after.checkpoints(is), u.start(is)
	if !stays {
		u.say("persia:jobs", "the job %s is no longer in the stack file: this deletes its %d replicas%s", name, was.Replicas(),
			u.fate(had, "Its checkpoints stay in %s. To continue from them, write the job again, with the same name and runId")).
			Ends = was.workloads(name)
		return
	}
	if saved := u.before.saved(was); u.lost(saved) != "" {
		u.say(path, "all checkpoints of the job %s in %s %s. To keep them, copy them to another volume first", name, saved, u.lost(saved))
	} else if had != has && had != (storedFolder{}) {
		u.say(path, "the next attempt of the job %s does not see its checkpoints, and trains %s%s", name, start,
			u.fate(had, "They stay in %s. To continue from them, restore the job's runId and mounts, and the volumes"))
	}
	record, isRecord := u.before.stored(was, was.contract().Record), u.after.stored(is, is.contract().Record)
	if had == has && record != (storedFolder{}) && record != isRecord && !is.byOperator() {
		u.say(path, "the nn-workers of the job %s no longer see the record of its run: a complete job trains again%s", name,
			u.fate(record, "It stays in %s. To keep it, restore the job's runId and the mounts of nnWorker"))
	}
	restarted := restarted(was, is)
	switch {
	case was.Replicas() == 0: // nothing runs
	case u.after.Replaced != nil:
		u.say(path, "the job %s ends with the cluster %s, and begins in the new one. There it trains %s", name, u.after.Replaced.Cluster, start)
	case is.Replicas() == 0:
		u.say(path+".suspend", "the job %s stops: this deletes its %d replicas. Without suspend, it trains %s", name, was.Replicas(), start).
			Ends = was.workloads(name)
	case len(restarted) == 0:
	case was.together() || is.together():
		until := fmt.Sprintf("about %s without the job, if a replica takes so long", minutes(kube.RolloutTime))
		if is.Queue != "" {
			until = fmt.Sprintf("which wait in the queue %s, behind the jobs of its priority, until there is room for all", is.Queue)
		}
		u.say(path, "the job %s restarts: this deletes its %d replicas and creates %d, %s. It then trains %s%s",
			name, was.Replicas(), is.Replicas(), until, start, u.ifComplete(was, is)).Ends = was.workloads(name)
	default:
		var roles []string
		most := 0
		for _, role := range restarted {
			roles = append(roles, fmt.Sprintf("%s (%d)", role, is.Roles[role].Replicas))
			most = max(most, is.Roles[role].Replicas)
		}
		u.say(path, "the job %s restarts: this replaces the pods of %s, one of each role at a time, "+
			"and the job does not train until the last of %d is ready: about %s, if a replica takes %s. It then trains %s. "+
			"To replace all pods at once, suspend the job first%s",
			name, strings.Join(roles, ", "), most, minutes(time.Duration(most)*kube.RolloutTime), minutes(kube.RolloutTime), start,
			kept(was, is, restarted)).Ends = was.workloads(name, restarted...)
	}
	u.divided(path, was, is)
}

// kept says which servers keep their memory while other roles of a job restart, or returns "".
func kept(was, is Training, restarted []string) string {
	servers := config.KindEmbeddingParameterServer.Name
	if !was.contract().Partial || !is.contract().Partial || slices.Contains(restarted, servers) || was.servers() != is.servers() {
		return ""
	}
	return fmt.Sprintf(". Its %s keep their memory, if the script has saved its dense state since the newest checkpoint",
		input.Count(is.servers(), "embedding parameter server"))
}

// divided says that another number of servers divides the embeddings anew.
func (u *update) divided(path string, was, is Training) {
	if was.servers() != 0 && is.servers() != 0 && was.servers() != is.servers() && u.after.checkpoints(is) != (storedFolder{}) {
		u.say(path+".embeddingParameterServer.replicas",
			"%d servers instead of %d: PERSIA divides the embeddings of the checkpoint anew when the next attempt loads it, "+
				"which takes about as long as a checkpoint, and fails if num_hashmap_internal_shards is below 4", is.servers(), was.servers())
	}
}

// restarted returns the roles of a job whose pods an update replaces.
func restarted(was, is Training) []string {
	var roles []string
	for _, kind := range config.Kinds() {
		old, had := was.Roles[kind.Name]
		now, has := is.Roles[kind.Name]
		// PERSIA's operator and JobSet read the number of replicas only when a job begins.
		if had && has && (old.Digest != now.Digest || is.together() && old.Replicas != now.Replicas) || had != has || was.Queue != is.Queue {
			roles = append(roles, kind.Name)
		}
	}
	return roles
}

// start says from where the next attempt of a job trains.
func (u *update) start(training Training) string {
	own, at := training.contract().Own.Path, u.after.saved(training)
	switch why := u.lost(at); {
	case why != "":
		return fmt.Sprintf("from the beginning, because its checkpoints in %s %s", at, why)
	case own != "":
		return "from what its script loads from " + own
	case at != (storedFolder{}):
		return fmt.Sprintf("from the newest complete checkpoint in %s, or from the beginning if there is none", at)
	case training.byOperator():
		return "from what its script loads"
	default:
		return "from the beginning, because nn-workers, embedding workers, and embedding parameter servers mount no volume at the same path"
	}
}

// ifComplete says what a restart costs a JobSet that is complete, and has no pods. The state does not tell that the
// job is complete.
func (u *update) ifComplete(was, is Training) string {
	if was.Engine != config.EngineJobSet {
		return ""
	}
	until := "until they have read that"
	if u.after.checkpoints(is) == (storedFolder{}) {
		until = "and train it again"
	}
	return fmt.Sprintf(". If its run is complete, its %d replicas and the nodes for them come back %s; "+
		"to prevent it, write suspend: true", is.Replicas(), until)
}

// brokers says which NATS servers end, and which jobs lose all of theirs.
func (u *update) brokers() {
	for _, name := range slices.Sorted(maps.Keys(u.before.Brokers)) {
		was := u.before.Brokers[name]
		is, stays := u.after.Brokers[name]
		changed := func(path string) bool {
			return !maps.Equal(flat(output(was.object, path)), flat(output(is.object, path)))
		}
		const version = "spec.version" // which the operator changes server by server
		var paths []string
		for _, path := range append(slices.Clip(nats.ReplacedBy), version) {
			if stays && changed(path) && (path != version || was.Size == 1) {
				paths = append(paths, path)
			}
		}
		var effect *Effect
		switch servers := input.Count(was.Size, "server"); {
		case !stays:
			effect = u.say("persia:nats", "the NATS cluster %s ends, with its %s", name, servers)
		case len(paths) > 0:
			effect = u.say("persia:nats", "in the NATS cluster %s, %s changes: this replaces %s at once", name, strings.Join(paths, ", "), servers)
		case is.Size < was.Size:
			effect = u.say("persia:nats", "%d of %s of the NATS cluster %s end, and what is connected to them connects to the rest",
				was.Size-is.Size, servers, name)
		case changed(version):
			effect = u.say("persia:nats", "%s of the NATS cluster %s are replaced, one at a time", servers, name)
		default:
			continue
		}
		effect.Ends = []string{name}
		for _, job := range u.before.Running() {
			if len(paths) > 0 && u.before.Trainings[job].contract().NATS == name && u.after.Trainings[job].Replicas() > 0 {
				effect.Text += "; " + u.withoutNATS(job)
			}
		}
	}
}

// withoutNATS describes a job while no server of its NATS answers.
func (u *update) withoutNATS(name string) string {
	training := u.after.Trainings[name]
	if training.byOperator() {
		return fmt.Sprintf("the processes of the job %s lose their connections, and nothing restarts them together", name)
	}
	return fmt.Sprintf("if no server answers for PERSIA_NATS_SECONDS, the attempt of the job %s ends. "+
		"The next one begins when NATS answers, and trains %s", name, u.start(training))
}

// minutes returns a duration without seconds, like 2h30m.
func minutes(d time.Duration) string { return strings.TrimSuffix(d.String(), "0s") }
