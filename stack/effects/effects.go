// Package effects says which running pods an update ends, until when, and which training time or data that costs. It
// compares the resources in the state of the stack with what the program registers. Pulumi's preview shows which
// resources change.
package effects

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"persia/config"
	"persia/config/input"
	"persia/infra/gke"
	"persia/kube"
	"persia/workload/nats"
)

// Effect is what an update does to pods that run, or to stored data.
type Effect struct {
	// Text says it to people, in one line. A job has at most one line of its own, which begins with its name.
	Text string
	// Ends are the workloads that lose pods: roles of jobs, like criteo-nn-worker, NATS clusters, and workloads of PEDL. Of
	// node pools that lose nodes, it has "pool NAME". Risks are what may lose some, because GKE chooses the nodes that go.
	Ends, Risks []string
}

// Text returns the effects as one text, or "" if there are none. The line of one that ends something begins with "! ",
// and others with "- ".
func Text(effects []Effect) string {
	if len(effects) == 0 {
		return ""
	}
	text := config.EffectsTitle + "\n"
	for _, effect := range effects {
		text += map[bool]string{true: "\n! ", false: "\n- "}[len(effect.Ends) > 0] + effect.Text
	}
	return text
}

// Of returns what an update does to a stack.
func Of(before, after State) []Effect {
	u := &update{before: before, after: after, told: map[string]bool{}}
	u.cluster()
	for _, name := range slices.Sorted(maps.Keys(before.Trainings)) {
		u.job(name)
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
	// told has the jobs of which an effect says from where they train next, and true for those that the update restarts.
	told map[string]bool
}

// say adds an effect.
func (u *update) say(format string, args ...any) *Effect {
	u.said = append(u.said, Effect{Text: fmt.Sprintf(format, args...)})
	return &u.said[len(u.said)-1]
}

// cluster says that the update replaces the cluster.
func (u *update) cluster() {
	if u.after.Replaced == nil {
		return
	}
	changes := input.Words(u.after.Replaced.Settings, func(s gke.Setting) string {
		return fmt.Sprintf("%s was %s and is now %s", s.Path, s.Was, s.Is)
	})
	gone := u.say("%s: this deletes the cluster %s with everything in it, and all of the stack moves to another cluster",
		strings.Join(changes, ", "), u.after.Replaced.Cluster)
	gone.Ends = slices.Concat(slices.Collect(maps.Keys(u.before.Brokers)), slices.Collect(maps.Keys(u.before.pedl)))
	for name := range u.before.pools {
		gone.Ends = append(gone.Ends, "pool "+name)
	}
	for name, job := range u.before.Trainings {
		gone.Ends = append(gone.Ends, job.workloads(name)...)
	}
}

// job says what becomes of a job, and of its checkpoints.
func (u *update) job(name string) {
	was := u.before.Trainings[name]
	is, stays := u.after.Trainings[name]
	had, has, lost := u.before.checkpoints(was), u.after.checkpoints(is), u.lost(u.before.saved(was))
	text, next, then, roles := name+":", "its next attempt", "", restarted(was, is)
	var ends []string
	say := func(format string, args ...any) { text += "; " + fmt.Sprintf(format, args...) }
	switch {
	case !stays:
		u.say("%s ends, because it is not in the stack file%s", name,
			u.fate(had, "its checkpoints stay in %s: to resume from them, write it again with this name and runId")).Ends = was.workloads(name)
		return
	case was.Replicas() == 0: // nothing runs
	case u.after.Replaced != nil:
		text, next = name+" moves to the new cluster", "there, it"
	case is.Replicas() == 0:
		text, next, ends = name+" stops", "without suspend, it", was.workloads(name)
	case len(roles) > 0:
		if was.together() || is.together() {
			roles = nil // all
		}
		replaced, most := is.named(roles)
		until := u.about(was, most)
		switch {
		case is.Queue != "":
			until = fmt.Sprintf(", and wait in the queue %s until there is room for all", is.Queue)
		case most > 1:
			then = "; to replace all at once, suspend it first"
		}
		if was.Engine == config.EngineJobSet { // whose state does not tell whether it is complete
			then = "; if its run is complete, its replicas come back to find that out: to prevent it, write suspend: true"
		}
		text, next, ends = name+" restarts: "+replaced+" replaced"+until, "it", was.workloads(name, roles...)
		then = kept(was, is, roles) + then
	}
	if lost != "" {
		say("all its checkpoints in %s %s: to keep them, copy them to another volume first", u.before.saved(was), lost)
	}
	moved := lost == "" && had != has && had != (storedFolder{})
	if text != name+":" || moved {
		say("%s %s", next, u.start(was, is))
		u.told[name] = len(ends) > 0
	}
	if moved {
		text += u.fate(had, "the old checkpoints stay in %s: to resume from them, restore its runId, mounts, and volumes")
	}
	record, isRecord := u.before.stored(was, was.contract().Record), u.after.stored(is, is.contract().Record)
	if had == has && record != (storedFolder{}) && record != isRecord && !is.byOperator() {
		say("a complete run trains again, because nn-workers no longer see its record%s",
			u.fate(record, "that stays in %s: to keep it, restore the runId, and the mounts of nnWorker"))
	}
	if was.servers() != 0 && is.servers() != 0 && was.servers() != is.servers() && has != (storedFolder{}) {
		say("its embeddings are divided among %s instead of %d, which takes about as long as a checkpoint, "+
			"and fails with fewer than 4 internal shards", input.Count(is.servers(), "server"), was.servers())
	}
	if text != name+":" {
		u.say("%s", strings.Replace(text+then, ":;", ":", 1)).Ends = ends
	}
}

// its begins a sentence about parts of a job or a NATS cluster.
func its(number int, parts string) string {
	return "its" + strings.ReplaceAll(" "+parts, " 1 ", " ") + map[bool]string{true: " is", false: " are"}[number == 1]
}

// named begins a sentence about replicas of a job that are replaced: those of some roles, one of each at a time, or all at
// once if there are no roles. It returns how many come one after another.
func (t Training) named(roles []string) (text string, turns int) {
	turns, all, parts := 1, 0, []string{}
	for _, role := range roles {
		count := t.Roles[role].Replicas
		turns, all = max(turns, count), all+count
		parts = append(parts, input.Count(count, strings.Replace(role, "-ps", " parameter server", 1)))
	}
	if all == 0 || len(roles) == len(config.Kinds()) {
		all, parts = t.Replicas(), []string{input.Count(t.Replicas(), "replica")}
	}
	return its(all, input.And(parts)), turns
}

// about says how long replicas that start one after another take, if a job does not wait for nodes.
func (u *update) about(was Training, turns int) string {
	for pool := range u.before.pools {
		if u.losesNodes(pool) && len(u.before.rolesOn(was, pool)) > 0 {
			return ""
		}
	}
	return ", about " + minutes(time.Duration(turns)*kube.RolloutTime)
}

// kept says which servers keep their memory while other roles of a job restart, or returns "".
func kept(was, is Training, restarted []string) string {
	if !was.contract().Partial || !is.contract().Partial || len(restarted) == 0 || was.servers() != is.servers() ||
		slices.Contains(restarted, config.KindEmbeddingParameterServer.Name) {
		return ""
	}
	return fmt.Sprintf("; its %s keep their memory, if the script has saved its dense state since the newest checkpoint",
		input.Count(is.servers(), "embedding parameter server"))
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
func (u *update) start(was, is Training) string {
	own, at, had, has := is.contract().Own.Path, u.after.saved(is), u.before.checkpoints(was), u.after.checkpoints(is)
	switch why := u.lost(at); {
	case why != "":
		return "starts from the beginning"
	case own != "":
		return "resumes from what its script loads from " + own
	case at == (storedFolder{}) && is.byOperator():
		return "resumes from what its script loads"
	case at == (storedFolder{}):
		return "starts from the beginning, because nn-workers, embedding workers, and embedding parameter servers " +
			"mount no volume at the same path"
	case had == has:
		return "resumes from the newest checkpoint in " + at.String()
	case had.storage == has.storage && had.folder != has.folder && path.Dir(had.folder) == path.Dir(has.folder):
		return fmt.Sprintf("starts from the beginning, as run `%s`, unless that has checkpoints", path.Base(has.folder))
	default:
		return fmt.Sprintf("starts from the newest checkpoint in %s, or from the beginning if there is none", has)
	}
}

// resumes says from where a job trains that restarts, if no effect has said so.
func (u *update) resumes(name string) string {
	if _, told := u.told[name]; told {
		return ""
	}
	u.told[name] = false
	return ", and " + u.start(u.before.Trainings[name], u.after.Trainings[name])
}

// brokers says which NATS servers end, and which jobs lose all of theirs.
func (u *update) brokers() {
	for _, name := range slices.Sorted(maps.Keys(u.before.Brokers)) {
		was := u.before.Brokers[name]
		is, stays := u.after.Brokers[name]
		changed := func(path string) bool {
			return !maps.Equal(flat(output(was.object, path)), flat(output(is.object, path)))
		}
		newVersion := changed("spec.version") // which the operator changes server by server
		replaced := stays && (slices.ContainsFunc(nats.ReplacedBy, changed) || newVersion && was.Size == 1)
		var effect *Effect
		switch servers := its(was.Size, input.Count(was.Size, "server")); {
		case !stays:
			effect = u.say("the NATS cluster %s ends: %s deleted", name, servers)
		case replaced:
			effect = u.say("the NATS cluster %s restarts: %s replaced at once", name, servers)
		case is.Size < was.Size:
			effect = u.say("the NATS cluster %s shrinks: %d of its %d servers end, and their clients connect to the others",
				name, was.Size-is.Size, was.Size)
		case newVersion:
			effect = u.say("the NATS cluster %s gets another version: %s replaced, one at a time", name, servers)
		default:
			continue
		}
		effect.Ends = []string{name}
		for _, job := range u.before.Running() {
			if replaced && u.before.Trainings[job].contract().NATS == name && u.after.Trainings[job].Replicas() > 0 && !u.told[job] {
				effect.Text += "; " + u.withoutNATS(job)
			}
		}
	}
}

// withoutNATS describes a job while no server of its NATS answers.
func (u *update) withoutNATS(name string) string {
	if u.after.Trainings[name].byOperator() {
		return fmt.Sprintf("the processes of %s lose their connections, and nothing restarts them together", name)
	}
	return fmt.Sprintf("%s restarts when NATS answers again, unless that is soon%s", name, u.resumes(name))
}

// minutes returns a duration in words, like 2 h 30 min.
func minutes(d time.Duration) string {
	return strings.NewReplacer("h0m0s", " h", "m0s", " min", "h", " h ").Replace(d.String())
}
