package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// spelling is another way to write a field: both are names joined by dots.
type spelling struct{ written, canonical string }

// jobSpellings are the names that older releases of PERSIA have for fields of a
// PersiaJob (k8s/src/crd.rs and k8s/example in PersiaML/PERSIA).
var jobSpellings = []spelling{
	{"globalConfigPath", "persiaEnv.PERSIA_GLOBAL_CONFIG"},
	{"embeddingConfigPath", "persiaEnv.PERSIA_EMBEDDING_CONFIG"},
	{"nnWorkerPyEntryPath", "persiaEnv.PERSIA_NN_WORKER_ENTRY"},
	{"trainerPyEntryPath", "persiaEnv.PERSIA_NN_WORKER_ENTRY"},
	{"dataLoaderPyEntryPath", "persiaEnv.PERSIA_DATALOADER_ENTRY"},
	{"trainer", "nnWorker"},
	{"dataLoader", "dataloader"},
	{"dataCompose", "dataloader"},
	{"data-compose", "dataloader"},
	{"middleware", "embeddingWorker"},
	{"middlewareServer", "embeddingWorker"},
	{"embServer", "embeddingParameterServer"},
	{"emb-server", "embeddingParameterServer"},
	{"embeddingServer", "embeddingParameterServer"},
}

// natsSpellings are the fields of a NatsCluster that a stack has settings for. The
// resources of a server stand in pod; where PERSIA's own examples have them, the
// NATS operator does not read them.
var natsSpellings = []spelling{
	{"size", "size"},
	{"version", "version"},
	{"serverImage", "image"},
	{"natsConfig.maxPayload", "maxPayload"},
	{"natsConfig.maxPending", "maxPending"},
	{"natsConfig.maxConnections", "maxConnections"},
	{"natsConfig.write_deadline", "writeDeadline"},
	{"pod.resources", "resources"},
	{"resources", "resources"},
	{"pod.antiAffinity", "antiAffinity"},
	{"pod.enableConfigReload", "configReload"},
	{"pod.enableMetrics", "metrics"},
}

// OlderNames are the names that older releases of PERSIA have for fields of a job,
// each with the path of the field: its name, or names joined by dots.
func OlderNames() map[string]string {
	names := map[string]string{}
	for _, s := range jobSpellings {
		names[s.written] = s.canonical
	}
	return names
}

// renames are the fields of an object that were written by another name, by their
// canonical names. Both are names joined by dots.
type renames map[string]string

// written is the path at which a field was written.
func (r renames) written(canonical []string) []string {
	for end := len(canonical); end > 0; end-- {
		if written, ok := r[strings.Join(canonical[:end], ".")]; ok {
			return append(strings.Split(written, "."), canonical[end:]...)
		}
	}
	return canonical
}

// respelled is a job with the canonical names of its fields.
func (r *reader) respelled(at *field.Path, job map[string]any) (map[string]any, renames) {
	canonical := deepCopy(job)
	return canonical, r.respell(at, canonical, canonical, jobSpellings)
}

// respell moves what is written in one of the other ways from an object, which is at
// a path, to where it is looked for, in the same or another object.
func (r *reader) respell(at *field.Path, from, to map[string]any, spellings []spelling) renames {
	names := renames{}
	for _, s := range spellings {
		written, canonical := strings.Split(s.written, "."), strings.Split(s.canonical, ".")
		value, ok := take(from, written)
		if !ok {
			continue
		}
		if !put(to, canonical, value) {
			r.Unreadable(child(at, written), "sets the same field as %s; remove one of them", child(at, names.written(canonical)))
			continue
		}
		names[s.canonical] = s.written
	}
	return names
}

// take removes a value from an object, and what is empty without it.
func take(object map[string]any, names []string) (any, bool) {
	value, ok := object[names[0]]
	if !ok {
		return nil, false
	}
	if len(names) > 1 {
		inner, isObject := value.(map[string]any)
		if !isObject {
			return nil, false
		}
		if value, ok = take(inner, names[1:]); !ok || len(inner) > 0 {
			return value, ok
		}
	}
	delete(object, names[0])
	return value, true
}

// put adds a value to an object, unless there is one already.
func put(object map[string]any, names []string, value any) bool {
	existing, exists := object[names[0]]
	if len(names) == 1 {
		if !exists {
			object[names[0]] = value
		}
		return !exists
	}
	if !exists {
		existing = map[string]any{}
		object[names[0]] = existing
	}
	inner, isObject := existing.(map[string]any)
	return isObject && put(inner, names[1:], value)
}
