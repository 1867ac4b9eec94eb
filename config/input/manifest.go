package input

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	yamldocuments "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Manifests holds the jobs and the NATS settings of a stack, from its file and manifests.
type Manifests struct {
	// Jobs is the list of jobs: one for each PersiaJob of a manifest, and one for each
	// entry of the stack file without a manifest. It is nil if there is no list.
	Jobs any
	// NATS is the object of NATS settings, or nil if there is none.
	NATS any
	// Written maps paths of the tree to where the user wrote the values, for
	// [Problems.Written].
	Written map[string]string
}

// ManifestKeys are the values of the two keys that manifests can complete, or nil, and their paths.
type ManifestKeys struct {
	JobsPath, NATSPath *field.Path
	Jobs, NATS         any
}

// ReadManifests reads the manifests that jobs name from files, and merges them with the stack file,
// which takes precedence. StackOnly are the fields of a job that no PersiaJob has, as names
// joined by dots.
func ReadManifests(p *Problems, keys ManifestKeys, files fs.FS, stackOnly []string) Manifests {
	r := &manifestReader{Problems: p, files: files, stackOnly: stackOnly, natsPath: keys.NATSPath, written: map[string]string{}}
	tree := Manifests{Jobs: keys.Jobs, NATS: keys.NATS, Written: r.written}
	if list, ok := keys.Jobs.([]any); ok {
		tree.Jobs = r.jobs(keys.JobsPath, list)
	}
	if r.nats != nil {
		tree.NATS = r.mergeNATS(keys.NATS)
	}
	return tree
}

type manifestReader struct {
	*Problems
	files     fs.FS
	stackOnly []string
	natsPath  *field.Path
	nats      *document // the NatsCluster in the manifests, or nil
	written   map[string]string
}

// jobs merges each job of the stack file with its manifest.
func (r *manifestReader) jobs(at *field.Path, list []any) []any {
	merged := []any{}
	for i, entry := range list {
		from := at.Index(i)
		object, isObject := entry.(map[string]any)
		if !isObject {
			r.moved(at.Index(len(merged)), from)
			merged = append(merged, entry)
			continue
		}
		name, ok := object["manifest"].(string)
		if !ok {
			to := at.Index(len(merged))
			job, names := r.respelled(from, object)
			r.moved(to, from)
			r.renamed(to, from, names)
			merged = append(merged, job)
			continue
		}
		before := len(merged)
		for _, document := range r.readFile(from.Child("manifest"), name) {
			switch document.Kind {
			case persiaJob:
				merged = append(merged, r.mergeJob(document, from, object, at.Index(len(merged))))
			case natsCluster:
				r.takeNATS(document)
			}
		}
		if len(merged) == before && r.None() {
			r.Invalid(from.Child("manifest"), name, "contains no PersiaJob; add one, or name another file")
		}
	}
	return merged
}

// mergeJob merges the spec of a PersiaJob with the entry of the stack file at from.
func (r *manifestReader) mergeJob(doc *document, from *field.Path, entry map[string]any, to *field.Path) map[string]any {
	spec := doc.at.Child("spec")
	job, names := r.respelled(spec, doc.Spec)
	r.moved(to, spec)
	r.renamed(to, spec, names)
	if doc.sets != nil {
		r.moved(to, from)
		for role, container := range doc.sets {
			r.moved(to.Child(role), container)
		}
	}
	for _, field := range r.stackOnly {
		names := strings.Split(field, ".")
		if _, ok := take(job, names); ok {
			r.Unreadable(child(spec, names), "is not a field of a PersiaJob; set it in the stack file, next to manifest")
		}
		r.moved(child(to, names), child(from, names))
	}
	if doc.sets == nil {
		r.moved(to.Child("name"), doc.at.Child("metadata", "name"))
	}
	if doc.Metadata.Name != "" {
		job["name"] = doc.Metadata.Name
	}
	added, names := r.respelled(from, entry)
	for _, leaf := range leaves(added) {
		r.moved(child(to, leaf), child(from, names.written(leaf)))
	}
	merge(job, added)
	return job
}

// takeNATS records the NatsCluster of the stack. Several manifests may repeat the same one.
func (r *manifestReader) takeNATS(other *document) {
	switch first := r.nats; {
	case first == nil:
		r.nats = other
	case first.Metadata.Name != other.Metadata.Name || !reflect.DeepEqual(first.Spec, other.Spec):
		r.Forbidden(other.at, "differs from the NATS of %s, but a stack has only one; make them the same, or remove one and set the values in %s", first.at, r.natsPath)
	}
}

// mergeNATS merges the NatsCluster of the manifests with the stack file.
func (r *manifestReader) mergeNATS(key any) any {
	spec := r.nats.at.Child("spec")
	rest, settings := deepCopy(r.nats.Spec), map[string]any{"name": r.nats.Metadata.Name}
	names := r.respell(spec, rest, settings, natsSpellings)
	for _, leaf := range leaves(rest) {
		r.Unreadable(child(spec, leaf), "is not read from a manifest; remove it, and use the fields of %s", r.natsPath)
	}
	r.moved(r.natsPath.Child("name"), r.nats.at.Child("metadata", "name"))
	r.renamed(r.natsPath, spec, names)
	if key == nil {
		return settings
	}
	object, ok := key.(map[string]any)
	if !ok {
		return key
	}
	for _, leaf := range leaves(object) {
		r.moved(child(r.natsPath, leaf), child(r.natsPath, leaf))
	}
	merge(settings, deepCopy(object))
	return settings
}

// moved records that the user wrote the value of a path of the tree at another path.
func (r *manifestReader) moved(to, from *field.Path) {
	r.written[to.String()] = from.String()
}

// renamed records the fields of an object that the user wrote by other names.
func (r *manifestReader) renamed(to, from *field.Path, names renames) {
	for canonical, written := range names {
		r.moved(child(to, strings.Split(canonical, ".")), child(from, strings.Split(written, ".")))
	}
}

// merge adds the fields of an object to another one, and overwrites existing ones. It merges
// objects inside of them, except limits and requests, which it replaces as a whole.
func merge(into, from map[string]any) {
	for name, value := range from {
		inner, isObject := value.(map[string]any)
		existing, isBoth := into[name].(map[string]any)
		if isObject && isBoth && !isWhole(name) {
			merge(existing, inner)
			continue
		}
		into[name] = value
	}
}

// isWhole reports whether merge replaces an object as a whole.
func isWhole(name string) bool { return name == "limits" || name == "requests" }

// leaves returns the paths of all values in an object that merge does not descend into.
func leaves(object map[string]any) [][]string {
	var found [][]string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		inner, ok := object[name].(map[string]any)
		if !ok || isWhole(name) {
			found = append(found, []string{name})
			continue
		}
		for _, path := range leaves(inner) {
			found = append(found, append([]string{name}, path...))
		}
	}
	return found
}

// deepCopy copies an object and the objects in it.
func deepCopy(object map[string]any) map[string]any {
	copied := map[string]any{}
	for name, value := range object {
		if inner, ok := value.(map[string]any); ok {
			value = deepCopy(inner)
		}
		copied[name] = value
	}
	return copied
}

// child is field.Path.Child for any number of names.
func child(path *field.Path, names []string) *field.Path {
	return path.Child(names[0], names[1:]...)
}

// The kinds of objects that a manifest may hold.
const (
	persiaJob   = "PersiaJob"
	natsCluster = "NatsCluster"
)

var manifestVersions = map[string]string{persiaJob: "persia.com/v1", natsCluster: "nats.io/v1alpha2"}

// document is a Kubernetes object of a manifest.
type document struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Metadata   struct {
		Name string `json:"name,omitempty"`
		// Namespace is ignored, but allowed: the stack determines where its jobs run.
		Namespace string `json:"namespace,omitempty"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`

	at *field.Path
	// sets are the containers of the StatefulSets that the document is made of, by their roles, or nil.
	sets map[string]*field.Path
}

// readFile reads the objects of a file.
func (r *manifestReader) readFile(at *field.Path, name string) []*document {
	text, err := openFile(r.files, name)
	if err != nil {
		r.Undecodable(at, name, "%s", err)
		return nil
	}
	in := field.NewPath(fmt.Sprintf("%s(%s)", at, name))
	objects, err := objectsOf(text)
	if err != nil {
		r.Unreadable(in, "is not valid YAML: %s", strings.Join(strings.Fields(err.Error()), " "))
		return nil
	}
	var documents []*document
	var sets *document // the job that has the StatefulSets as its roles
	for i, object := range objects {
		doc := &document{at: in}
		if len(objects) > 1 {
			doc.at = in.Index(i)
		}
		if text, _ := object.(map[string]any); text["kind"] == "StatefulSet" && text["apiVersion"] == "apps/v1" {
			if sets == nil {
				sets = &document{Kind: persiaJob, at: in, Spec: map[string]any{}, sets: map[string]*field.Path{}}
				documents = append(documents, sets)
			}
			r.addRole(sets, doc.at, text)
			continue
		}
		Decode(r.Problems, doc.at, object, doc)
		if r.isOurs(doc) {
			documents = append(documents, doc)
		}
	}
	return documents
}

// scriptRoles are the roles by the argument with which the script launch.sh of PERSIA's StatefulSets
// starts them.
var scriptRoles = map[string]string{
	"trainer": "nnWorker", "datacompose": "dataloader", "middleware": "embeddingWorker", "embserver": "embeddingParameterServer",
}

// addRole makes a StatefulSet at a path a role of a job: the number of its replicas, its volumes, and its
// only container, without what the stack decides.
func (r *manifestReader) addRole(job *document, at *field.Path, set map[string]any) {
	spec, _ := set["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	pod, _ := template["spec"].(map[string]any)
	containers, _ := pod["containers"].([]any)
	if len(containers) != 1 {
		r.Unreadable(at.Child("spec", "template", "spec", "containers"), "must be one container, which runs a role of PERSIA; write a PersiaJob instead")
		return
	}
	path := at.Child("spec", "template", "spec", "containers").Index(0)
	container, _ := containers[0].(map[string]any)
	container = maps.Clone(container)
	args, _ := container["args"].([]any)
	name := ""
	if len(args) > 0 {
		name, _ = args[len(args)-1].(string)
	}
	role := scriptRoles[name]
	if _, again := job.sets[role]; role == "" || again {
		r.Unreadable(path.Child("args"), "must end with the argument of launch.sh for a role: %s, each in one StatefulSet; write a PersiaJob instead", Or(slices.Sorted(maps.Keys(scriptRoles))))
		return
	}
	job.sets[role] = path
	// The stack decides these.
	for _, known := range []struct {
		of    map[string]any
		at    *field.Path
		names []string
	}{
		{spec, at.Child("spec"), []string{"replicas", "selector", "serviceName", "template", "podManagementPolicy"}},
		{pod, at.Child("spec", "template", "spec"), []string{"containers", "volumes"}},
		{container, path, []string{"name", "args", "command", "image", "imagePullPolicy", "resources", "env", "volumeMounts"}},
	} {
		for _, name := range slices.Sorted(maps.Keys(known.of)) {
			if !slices.Contains(known.names, name) {
				r.Unreadable(known.at.Child(name), "is not read from a StatefulSet; remove it, and set fields of the job next to manifest")
			}
		}
	}
	fields := map[string]any{"replicas": spec["replicas"], "image": container["image"], "resources": container["resources"], "volumeMounts": container["volumeMounts"]}
	if env, ok := container["env"].([]any); ok {
		fields["env"] = slices.DeleteFunc(slices.Clone(env), func(e any) bool {
			variable, _ := e.(map[string]any)
			switch variable["name"] {
			case "REPLICA_SIZE":
				if fmt.Sprint(variable["value"]) != fmt.Sprint(spec["replicas"]) {
					r.Unreadable(path.Child("env"), "has REPLICA_SIZE %v, but the StatefulSet has %v replicas; make them equal", variable["value"], spec["replicas"])
				}
				return true
			case "NPROC_PER_NODE":
				fields["nprocPerNode"] = json.Number(fmt.Sprint(variable["value"]))
				return true
			}
			return false
		})
	}
	job.Spec[role] = withoutNull(fields)
	for name, value := range map[string]any{"imagePullPolicy": container["imagePullPolicy"], "volumes": pod["volumes"]} {
		if has := job.Spec[name]; value != nil && has != nil && !reflect.DeepEqual(has, value) {
			r.Unreadable(at, "has other %s than the StatefulSet before it, but a job has them once; make them the same", name)
		} else if value != nil {
			job.Spec[name] = value
		}
	}
}

func withoutNull(fields map[string]any) map[string]any {
	maps.DeleteFunc(fields, func(_ string, value any) bool { return value == nil })
	return fields
}

// isOurs reports whether an object is of a kind that a manifest may hold.
func (r *manifestReader) isOurs(doc *document) bool {
	version, known := manifestVersions[doc.Kind]
	switch {
	case known && doc.APIVersion == version:
		return true
	case !r.Decoded(doc.at):
	case known:
		r.Undecodable(doc.at.Child("apiVersion"), doc.APIVersion, "must be %s for a %s", version, doc.Kind)
	default:
		r.Undecodable(doc.at.Child("kind"), doc.Kind, "must be PersiaJob, NatsCluster, or a StatefulSet of a role; apply other objects with kubectl")
	}
	return false
}

func openFile(files fs.FS, name string) ([]byte, error) {
	clean := path.Clean(name)
	if files == nil || !fs.ValidPath(clean) {
		return nil, errors.New("must be in the project's directory or below it; write its path from there, like jobs/train.yml")
	}
	text, err := fs.ReadFile(files, clean)
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("does not exist; write the path of a file from the project's directory, like jobs/train.yml")
	case errors.As(err, &failed):
		return nil, fmt.Errorf("cannot be read: %w", failed.Err)
	}
	return text, err
}

// objectsOf splits a file into its documents, without empty ones.
func objectsOf(text []byte) ([]any, error) {
	reader := yamldocuments.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var objects []any
	for {
		part, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		converted, err := yaml.YAMLToJSONStrict(part)
		if err != nil {
			return nil, err
		}
		if object := ParseJSON(string(converted)); object != nil {
			objects = append(objects, object)
		}
	}
}

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
	{"persiaEnv.PERSIA_GLOBAL_CONFIG_PATH", "persiaEnv.PERSIA_GLOBAL_CONFIG"},
	{"persiaEnv.PERSIA_EMBEDDING_CONFIG_PATH", "persiaEnv.PERSIA_EMBEDDING_CONFIG"},
	{"persiaEnv.PERSIA_NN_WORKER_PY_ENTRY_PATH", "persiaEnv.PERSIA_NN_WORKER_ENTRY"},
	{"persiaEnv.PERSIA_DATALOADER_PY_ENTRY_PATH", "persiaEnv.PERSIA_DATALOADER_ENTRY"},
	{"global_config_path", "persiaEnv.PERSIA_GLOBAL_CONFIG"},
	{"embedding_config_path", "persiaEnv.PERSIA_EMBEDDING_CONFIG"},
	{"trainer_py_entry_path", "persiaEnv.PERSIA_NN_WORKER_ENTRY"},
	{"data_loader_py_entry_path", "persiaEnv.PERSIA_DATALOADER_ENTRY"},
	{"enable_metrics", "enableMetrics"},
	{"log_level", "logLevel"},
	{"restart_policy", "restartPolicy"},
	{"image_pull_policy", "imagePullPolicy"},
	{"trainer", "nnWorker"},
	{"nnWorker.nproc_per_node", "nnWorker.nprocPerNode"},
	{"middlewareServer", "embeddingWorker"},
	{"embeddingServer", "embeddingParameterServer"},
	{"embedding_server", "embeddingParameterServer"},
	{"middleware_server", "embeddingWorker"},
}

// natsSpellings are the fields of a NatsCluster for which a stack has settings. The NATS
// operator reads resources only from pod, but PERSIA's examples have them at the top.
var natsSpellings = []spelling{
	{"size", "size"},
	{"version", "version"},
	{"serverImage", "image"},
	{"natsConfig.maxPayload", "maxPayload"},
	{"pod.resources", "resources"},
	{"resources", "resources"},
	{"pod.antiAffinity", "antiAffinity"},
	{"pod.enableMetrics", "metrics"},
}

// OlderNames maps the names of job fields in older releases of PERSIA to the fields, as names
// joined by dots, without those within an object.
func OlderNames() map[string]string {
	names := map[string]string{}
	for _, s := range jobSpellings {
		if !strings.Contains(s.written, ".") { // the others are only in manifests
			names[s.written] = s.canonical
		}
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
func (r *manifestReader) respelled(at *field.Path, job map[string]any) (map[string]any, renames) {
	canonical := deepCopy(job)
	names := r.respell(at, canonical, canonical, jobSpellings)
	for _, role := range canonical {
		if role, ok := role.(map[string]any); ok {
			readOnly(role)
		}
	}
	return canonical, names
}

// readOnly gives the field read_only of the mounts of a role, which PERSIA's documentation has, its name in
// Kubernetes.
func readOnly(role map[string]any) {
	mounts, _ := role["volumeMounts"].([]any)
	for _, mount := range mounts {
		if mount, ok := mount.(map[string]any); ok && mount["read_only"] != nil && mount["readOnly"] == nil {
			mount["readOnly"] = mount["read_only"]
			delete(mount, "read_only")
		}
	}
}

// respell moves fields with other names from an object, which is at a path, to their canonical
// names in the same or another object.
func (r *manifestReader) respell(at *field.Path, from, to map[string]any, spellings []spelling) renames {
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
		names[s.canonical] = strings.Join(names.written(written), ".")
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
