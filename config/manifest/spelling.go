package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// spelling is another name of a field. Both are names joined by dots.
type spelling struct{ written, canonical string }

// jobSpellings are the names of PersiaJob fields in older releases of PERSIA (k8s/src/crd.rs
// and k8s/example in PersiaML/PERSIA).
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

// natsSpellings are the fields of a NatsCluster for which a stack has settings. The NATS
// operator reads resources only from pod, but PERSIA's examples have them at the top.
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

// OlderNames maps the names of job fields in older releases of PERSIA to the fields, as names
// joined by dots.
func OlderNames() map[string]string {
	names := map[string]string{}
	for _, s := range jobSpellings {
		names[s.written] = s.canonical
	}
	return names
}

// renames maps canonical names of fields to the names that the user wrote. Both are names
// joined by dots.
type renames map[string]string

// written returns the path of a field as the user wrote it.
func (r renames) written(canonical []string) []string {
	for end := len(canonical); end > 0; end-- {
		if written, ok := r[strings.Join(canonical[:end], ".")]; ok {
			return append(strings.Split(written, "."), canonical[end:]...)
		}
	}
	return canonical
}

// respelled returns a copy of a job with canonical names.
func (r *reader) respelled(at *field.Path, job map[string]any) (map[string]any, renames) {
	canonical := deepCopy(job)
	return canonical, r.respell(at, canonical, canonical, jobSpellings)
}

// respell moves fields with other names from an object, which is at a path, to their canonical
// names in the same or another object.
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

// take removes a value from an object, and objects that become empty.
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

// put adds a value to an object, and reports whether the field was free.
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
