package config

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// spelling is another way to write a field: both are paths of names with dots.
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

// OlderNames are the names that older releases of PERSIA have for fields of a job,
// each with the path of the field: its name, or names with dots.
func OlderNames() map[string]string {
	names := map[string]string{}
	for _, s := range jobSpellings {
		names[s.written] = s.canonical
	}
	return names
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

// writtenPaths say of fields where, and by which name, they are written: the path
// that a problem is reported with, by the path that the field has for the program.
type writtenPaths map[string]string

// of is the path as it is written.
func (w writtenPaths) of(path string) string {
	for outer := path; outer != ""; outer = parent(outer) {
		if written, ok := w[outer]; ok {
			return w.of(written + path[len(outer):])
		}
	}
	return path
}

// settle gives the problems so far the paths that are written. What is noted later
// does not concern them.
func (d *decoder) settle() {
	for _, problem := range d.problems[d.settled:] {
		problem.Field = d.written.of(problem.Field)
	}
	d.settled = len(d.problems)
}

// parent is the path of what a field or an element stands in.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// respell moves what is written in one of the other ways from one object to where
// it is looked for, in the same or another one. The paths are those of the objects.
func (d *decoder) respell(from map[string]any, fromPath *field.Path, to map[string]any, toPath *field.Path, spellings []spelling) {
	for _, s := range spellings {
		written, canonical := strings.Split(s.written, "."), strings.Split(s.canonical, ".")
		value, ok := take(from, written)
		if !ok {
			continue
		}
		at, as := child(fromPath, written), child(toPath, canonical)
		if !put(to, canonical, value) {
			d.problems = append(d.problems, field.Forbidden(at, "says the same as "+d.written.of(as.String())+"; write one of the two"))
			continue
		}
		if at.String() != as.String() {
			d.written[as.String()] = at.String()
		}
	}
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

// leaves lists the paths, within an object, of everything that is no object.
func leaves(object map[string]any) [][]string {
	var found [][]string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		inner, ok := object[name].(map[string]any)
		if !ok {
			found = append(found, []string{name})
			continue
		}
		for _, path := range leaves(inner) {
			found = append(found, append([]string{name}, path...))
		}
	}
	return found
}

// child is field.Path.Child for any number of names.
func child(path *field.Path, names []string) *field.Path {
	return path.Child(names[0], names[1:]...)
}
