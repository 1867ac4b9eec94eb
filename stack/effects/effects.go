package effects

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"persia/config"
	"persia/kube"
)

// Title is the first line of the text of all effects.
const Title = "What this update does to what runs:"

// Text returns the effects as one text, or "" if there are none.
func Text(effects []string) string {
	if len(effects) == 0 {
		return ""
	}
	return Title + "\n\n- " + strings.Join(effects, "\n- ")
}

// Of returns what an update does to a stack, one sentence or more for each effect. Paths are the
// paths of jobs in the stack file, by name.
func Of(before, after Stack, paths map[string]string) []string {
	before.deleted = deleted(before, after)
	effects := cluster(before, after)
	for _, name := range slices.Sorted(maps.Keys(before.Jobs)) {
		was := before.Jobs[name]
		is, stays := after.Jobs[name]
		switch {
		case !stays:
			effects = append(effects, ended(before, after, name, was))
		default:
			effects = append(effects, changed(before, after, job{paths[name], name, was, is})...)
		}
	}
	return slices.Concat(effects, brokers(before, after), pools(before, after), drivers(before, after), queues(before, after), platform(before, after), clusterData(before, after), volumes(before, after))
}

// ended describes the effect of removing a job from the stack file.
func ended(before, after Stack, name string, was Job) string {
	text := fmt.Sprintf("persia:jobs: the job %s is no longer in the stack file, and ", name)
	if was.Replicas() > 0 {
		text += fmt.Sprintf("ends: this deletes its %d replicas", was.Replicas())
	} else {
		text += "its objects are deleted"
	}
	if at := before.checkpoints(was); at != (storedFolder{}) {
		text += ". " + before.unlessDeleted(at, fmt.Sprintf("Its checkpoints stay in %s. To continue from them, write the job again, with the same name and runId", at))
	} else {
		text += ". To run it again, write it again"
	}
	for _, other := range slices.Sorted(maps.Keys(after.Jobs)) {
		if _, had := before.Jobs[other]; !had {
			return text + fmt.Sprintf(". The job %s is another one, and trains from the beginning", other)
		}
	}
	return text
}

// job is a job before and after an update.
type job struct {
	path, name string
	was, is    Job
}

// changed describes the effects on a job that stays.
func changed(before, after Stack, j job) []string {
	var effects []string
	say := func(field, format string, args ...any) {
		effects = append(effects, j.path+field+": "+fmt.Sprintf(format, args...))
	}
	had, has := before.checkpoints(j.was), after.checkpoints(j.is)
	switch {
	case j.was.run() != j.is.run() && j.was.run() != "" && j.is.run() != "":
		text := fmt.Sprintf("the job %s trains from the beginning, in the run %s", j.name, j.is.run())
		back := fmt.Sprintf("; to continue that run, write %q again", j.was.run())
		if had != (storedFolder{}) {
			back = ". " + before.unlessDeleted(had, fmt.Sprintf("The checkpoints of the run %s stay in %s", j.was.run(), had)+back)
		}
		say(".runId", "%s%s", text, back)
	case had != has && had != (storedFolder{}):
		which, back := "stay there", ". "+comeBack(before, after, j)
		if before.deleted[had.storage] {
			which, back = "this update deletes", ""
		}
		say("", "the next attempt of the job %s does not see the checkpoints in %s, which %s: it trains %s%s",
			j.name, had, which, after.start(j.is), back)
	}
	if record := before.stored(j.was, "PERSIA_STATE_DIR"); had == has && j.was.run() == j.is.run() && record != (storedFolder{}) && !after.reads(j.is, record) {
		say("", "the record of the run of the job %s stays in %s, where its nn-workers no longer read it: a complete job trains again. To keep it, restore the mounts of nnWorker", j.name, record)
	}
	if own := "PERSIA_CKPT_DIR"; j.was.nnWorkers().variable(own) != j.is.nnWorkers().variable(own) {
		say(".env", "%s of the job %s was %s and is now %s: the next attempt reads and writes its checkpoints there, and the old ones stay",
			own, j.name, written(j.was.nnWorkers().variable(own)), written(j.is.nnWorkers().variable(own)))
	}
	effects = append(effects, hidden(before, after, j)...)
	servers := config.KindEmbeddingParameterServer
	if was, is := j.was.Roles[servers.Name].Replicas, j.is.Roles[servers.Name].Replicas; is > 0 && is < was {
		say("."+servers.Field+".replicas", "%d instead of %d embedding parameter servers hold the embeddings: PERSIA distributes the checkpoint again, and each server needs about %.3g times the memory",
			is, was, float64(was)/float64(is))
	}
	restarted := j.restarted()
	switch {
	case j.was.Replicas() == 0: // nothing runs
	case after.Replaced != nil:
		say("", "the job %s ends with the cluster %s, and begins in the new one. There it trains %s", j.name, after.Replaced.Cluster, after.start(j.is))
	case j.is.Replicas() == 0:
		say(".suspend", "the job %s stops, and this deletes its %d replicas. Without suspend, it trains %s", j.name, j.was.Replicas(), after.start(j.is))
	case len(restarted) > 0 && (j.was.Together || j.is.Together):
		because := ""
		if j.was.Queue != j.is.Queue {
			because = fmt.Sprintf(", because its queue was %s and is now %s", written(j.was.Queue), written(j.is.Queue))
		}
		if j.is.Queue != "" {
			orPlace := ""
			if j.was.Queue != "" {
				orPlace = ", or its place in the queue if it waits"
			}
			say("", "the job %s restarts%s: this deletes its %d replicas%s. It then waits in the queue %s, behind the jobs of its priority, until there is room for %d, and trains %s%s",
				j.name, because, j.was.Replicas(), orPlace, j.is.Queue, j.is.Replicas(), after.start(j.is), after.startComplete(j))
			break
		}
		say("", "the job %s restarts%s: this deletes its %d replicas and creates %d: about %s without the job, if a replica takes so long. It then trains %s%s",
			j.name, because, j.was.Replicas(), j.is.Replicas(), minutes(kube.RolloutTime), after.start(j.is), after.startComplete(j))
	case len(restarted) > 0:
		var roles []string
		most := 0
		for _, role := range restarted {
			roles = append(roles, fmt.Sprintf("%s (%d)", role, j.is.Roles[role].Replicas))
			most = max(most, j.is.Roles[role].Replicas)
		}
		say("", "the job %s restarts: this replaces the pods of %s, one of each role at a time, and the job does not train until the last of %d is ready: about %s, if a replica takes %s. It then trains %s. To replace all pods at once, suspend the job first",
			j.name, strings.Join(roles, ", "), most, minutes(time.Duration(most)*kube.RolloutTime), minutes(kube.RolloutTime), after.start(j.is))
	}
	return effects
}

// reads reports whether the nn-workers of a job read the record of its run in a folder.
func (s Stack) reads(job Job, record storedFolder) bool {
	return job.ByOperator || record == s.stored(job, "PERSIA_STATE_DIR")
}

// nnWorkers returns the nn-workers of a job.
func (j Job) nnWorkers() Role { return j.Roles[config.KindNNWorker.Name] }

// start says from where the next attempt of a job trains.
func (s Stack) start(job Job) string {
	own := job.nnWorkers().variable("PERSIA_CKPT_DIR")
	at := s.checkpoints(job)
	switch {
	case own != "":
		return "from what its script loads from " + own
	case at != (storedFolder{}):
		return fmt.Sprintf("from the newest complete checkpoint in %s, or from the beginning if there is none", at)
	case job.ByOperator:
		return "from what its script loads"
	default:
		return "from the beginning, because nn-workers and embedding parameter servers mount no writable volume at the same path"
	}
}

// startComplete says what a restart costs a JobSet that is complete, and has no pods. The state does not
// tell that the job is complete.
func (s Stack) startComplete(j job) string {
	if j.was.Engine() != config.EngineJobSet {
		return ""
	}
	until := "until they have read that"
	if s.checkpoints(j.is) == (storedFolder{}) {
		until = "and train it again"
	}
	return fmt.Sprintf(". If its run is complete, its %d replicas and the nodes for them come back %s; to prevent it, write suspend: true", j.is.Replicas(), until)
}

// comeBack says how a job sees its checkpoints again.
func comeBack(before, after Stack, j job) string {
	for name, was := range before.Volumes {
		if is, ok := after.Volumes[name]; ok && is.Claim == was.Claim && is != was {
			return fmt.Sprintf("To continue from them, restore the volume %s in persia:storage", name)
		}
	}
	return "To continue from them, restore the mounts of nnWorker and embeddingParameterServer"
}

func written(value string) string {
	if value == "" {
		return "not set"
	}
	return value
}
