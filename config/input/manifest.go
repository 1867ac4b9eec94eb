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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	yamldocuments "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// ReadManifests reads the manifests that jobs name from files. It returns the jobs with an entry for each
// PersiaJob of a manifest, and NATS with the NatsCluster of the manifests. The stack file takes precedence.
func ReadManifests(p *Problems, jobs, nats Located, files fs.FS) (allJobs, allNATS any) {
	list, ok := jobs.Value.([]any)
	if !ok {
		return jobs.Value, nats.Value
	}
	r := &manifestReader{Problems: p, files: files, natsAt: nats.At}
	all := []any{}
	for i, entry := range list {
		all = append(all, r.jobs(jobs.At.Index(i), entry)...)
	}
	if r.nats.At == nil {
		return all, nats.Value
	}
	return all, append(r.natsLayers(), nats)
}

type manifestReader struct {
	*Problems
	files  fs.FS
	natsAt *field.Path
	nats   document // the NatsCluster in the manifests, if any
}

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

	At *field.Path `json:"-"`
}

// jobs returns the jobs of an entry of the stack file: the jobs in its manifest, or itself.
func (r *manifestReader) jobs(at *field.Path, entry any) []any {
	object, ok := entry.(map[string]any)
	if !ok {
		return []any{entry}
	}
	file, hasManifest := object["manifest"].(string)
	overrides := r.respelled(Located{At: at, Value: object}, jobSpellings)
	if !hasManifest {
		return []any{overrides}
	}
	var jobs []any
	sets := roleSets{shared: map[string]any{}}
	in := field.NewPath(fmt.Sprintf("%s(%s)", at.Child("manifest"), file))
	objects := r.read(at.Child("manifest"), file, in)
	for i, object := range objects {
		doc := document{At: in}
		if len(objects) > 1 {
			doc.At = in.Index(i)
		}
		if set, _ := object.(map[string]any); set["kind"] == "StatefulSet" && set["apiVersion"] == "apps/v1" {
			r.addRole(&sets, doc.At, set)
			continue
		}
		if fields, ok := object.(map[string]any); ok && fields["kind"] == nil {
			r.Unreadable(doc.At, "is no object of Kubernetes, which has a kind; write a PersiaJob, whose roles are the services of a compose file")
			continue
		}
		if Decode(r.Problems, doc.At, object, &doc); !r.Decoded(doc.At) {
			continue
		}
		switch kind := doc.APIVersion + " " + doc.Kind; kind {
		case "persia.com/v1 PersiaJob":
			for _, name := range []string{"name", "manifest"} {
				if doc.Spec[name] != nil {
					r.Forbidden(doc.At.Child("spec", name), "a PersiaJob has its name in metadata, and names no manifest; remove it")
				}
			}
			job := r.respelled(Located{At: doc.At.Child("spec"), Value: doc.Spec}, jobSpellings)
			name := map[string]any{"name": Located{At: doc.At.Child("metadata", "name"), Value: doc.Metadata.Name}}
			jobs = append(jobs, slices.Concat(job, Layers{name}, overrides))
		case "nats.io/v1alpha2 NatsCluster":
			r.takeNATS(doc)
		default:
			r.Undecodable(doc.At.Child("kind"), kind, "must be PersiaJob of persia.com/v1, NatsCluster of nats.io/v1alpha2, "+
				"or StatefulSet of apps/v1 for a role; apply other objects with kubectl")
		}
	}
	if sets.layers != nil {
		jobs = append(jobs, slices.Concat(Layers{Located{At: at, Value: sets.shared}}, sets.layers, overrides))
	}
	if jobs == nil && r.None() {
		r.Invalid(at.Child("manifest"), file, "contains no PersiaJob; add one, or name another file")
	}
	return jobs
}

// takeNATS records the NatsCluster of the stack. Several manifests may repeat the same one.
func (r *manifestReader) takeNATS(other document) {
	switch first := r.nats; {
	case first.At == nil:
		r.nats = other
	case first.Metadata.Name != other.Metadata.Name || !reflect.DeepEqual(first.Spec, other.Spec):
		r.Forbidden(other.At, "differs from the NATS of %s, but a stack has only one; make them the same, or remove one and "+
			"set the values in %s", first.At, r.natsAt)
	}
}

// natsLayers returns the settings of the NatsCluster in the manifests.
func (r *manifestReader) natsLayers() Layers {
	spec := r.nats.At.Child("spec")
	settings := r.respelled(Located{At: spec, Value: r.nats.Spec}, natsSpellings)
	written := strings.Join(Words(natsSpellings, func(s spelling) string { return s.written }), " ")
	r.unreadable(spec, r.nats.Spec, fmt.Sprintf("has no counterpart in %s, which has only name, nodePool, and the "+
		"counterparts of %s; remove it", r.natsAt, And(strings.Fields(written))))
	settings[0] = map[string]any{"name": Located{At: r.nats.At.Child("metadata", "name"), Value: r.nats.Metadata.Name}}
	return settings
}

// scriptRoles are the roles by the argument with which the script launch.sh of PERSIA's StatefulSets starts them.
var scriptRoles = map[string]string{
	"trainer": "nnWorker", "datacompose": "dataloader", "middleware": "embeddingWorker", "embserver": "embeddingParameterServer",
}

// roleSets is a job made of StatefulSets.
type roleSets struct {
	layers Layers
	shared map[string]any // fields of the job that every StatefulSet repeats
}

// statefulSet is what a StatefulSet of a role may hold. The stack decides what is ignored.
type statefulSet struct {
	APIVersion ignored `json:"apiVersion"`
	Kind       ignored `json:"kind"`
	Metadata   ignored `json:"metadata"`
	Status     ignored `json:"status"`
	Spec       struct {
		Replicas            any     `json:"replicas"`
		Selector            ignored `json:"selector"`
		ServiceName         ignored `json:"serviceName"`
		PodManagementPolicy ignored `json:"podManagementPolicy"`
		Template            struct {
			Metadata ignored `json:"metadata"`
			Spec     struct {
				Containers []container `json:"containers"`
				Volumes    any         `json:"volumes"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type container struct {
	Name            ignored `json:"name"`
	Command         ignored `json:"command"`
	Args            []any   `json:"args"`
	Env             []any   `json:"env"`
	Image           any     `json:"image"`
	ImagePullPolicy any     `json:"imagePullPolicy"`
	Resources       any     `json:"resources"`
	VolumeMounts    any     `json:"volumeMounts"`
}

type ignored = any

// addRole makes a StatefulSet a role of a job: the number of its replicas, its volumes, and its only container.
func (r *manifestReader) addRole(job *roleSets, at *field.Path, object any) {
	const why = "is not read from a StatefulSet; remove it, and set fields of the job next to manifest"
	var set statefulSet
	decoder{Problems: r.Problems, unread: why}.decode(at, object, reflect.ValueOf(&set).Elem())
	pod, at := set.Spec.Template.Spec, at.Child("spec")
	podAt := at.Child("template", "spec")
	if len(pod.Containers) != 1 {
		r.Forbidden(podAt.Child("containers"), "must be one container, which runs a role of PERSIA; write a PersiaJob instead")
		return
	}
	c, path, role := pod.Containers[0], podAt.Child("containers").Index(0), ""
	if len(c.Args) > 0 {
		role = scriptRoles[fmt.Sprint(c.Args[len(c.Args)-1])]
	}
	again := slices.ContainsFunc(job.layers, func(layer any) bool { return layer.(map[string]any)[role] != nil })
	if role == "" || again {
		r.Forbidden(path.Child("args"), "must end with the argument of launch.sh for a role: %s, each in one StatefulSet; "+
			"write a PersiaJob instead", Or(slices.Sorted(maps.Keys(scriptRoles))))
		return
	}
	fields := map[string]any{
		"replicas": Located{At: at.Child("replicas"), Value: set.Spec.Replicas},
		"image":    c.Image, "resources": c.Resources, "volumeMounts": c.VolumeMounts,
	}
	fields["env"] = slices.DeleteFunc(c.Env, func(e any) bool {
		variable, _ := e.(map[string]any)
		if variable["name"] == "NPROC_PER_NODE" {
			fields["nprocPerNode"] = json.Number(fmt.Sprint(variable["value"]))
		}
		return variable["name"] == "NPROC_PER_NODE" || variable["name"] == "REPLICA_SIZE"
	})
	job.layers = append(job.layers, map[string]any{role: Located{At: path, Value: fields}})

	for name, shared := range map[string]Located{
		"imagePullPolicy": {At: path.Child("imagePullPolicy"), Value: c.ImagePullPolicy},
		"volumes":         {At: podAt.Child("volumes"), Value: pod.Volumes},
	} {
		first, again := job.shared[name].(Located)
		switch {
		case shared.Value == nil:
		case !again:
			job.shared[name] = shared
		case !reflect.DeepEqual(first.Value, shared.Value):
			r.Unreadable(shared.At, "differs from %s, but a job has %s once; make them the same", first.At, name)
		}
	}
}

// read returns the objects of a file, which problems in its text name in.
func (r *manifestReader) read(at *field.Path, name string, in *field.Path) []any {
	text, err := fs.ReadFile(r.files, path.Clean(name))
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	if err != nil {
		r.Undecodable(at, name, "cannot be read: %s; write the path of a file in the project's directory or below it, like jobs/train.yml", err)
		return nil
	}
	checkText(r.Problems, in, text)
	objects, err := objectsOf(text)
	if err != nil {
		r.Unreadable(in, "is not valid YAML: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	return objects
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
		converted, err := yaml.YAMLToJSON(part)
		if err != nil {
			return nil, err
		}
		if object := ParseJSON(string(converted)); object != nil {
			objects = append(objects, object)
		}
	}
}

// spelling has the other names of a field, separated by spaces. All are names joined by dots.
type spelling struct{ canonical, written string }

// jobSpellings are the names of PersiaJob fields in older releases of PERSIA (k8s/src/crd.rs
// and k8s/example in PersiaML/PERSIA).
var jobSpellings = []spelling{
	{"persiaEnv.PERSIA_GLOBAL_CONFIG", "globalConfigPath global_config_path persiaEnv.PERSIA_GLOBAL_CONFIG_PATH"},
	{"persiaEnv.PERSIA_EMBEDDING_CONFIG", "embeddingConfigPath embedding_config_path persiaEnv.PERSIA_EMBEDDING_CONFIG_PATH"},
	{"persiaEnv.PERSIA_NN_WORKER_ENTRY",
		"nnWorkerPyEntryPath trainerPyEntryPath trainer_py_entry_path persiaEnv.PERSIA_NN_WORKER_PY_ENTRY_PATH"},
	{"persiaEnv.PERSIA_DATALOADER_ENTRY",
		"dataLoaderPyEntryPath data_loader_py_entry_path persiaEnv.PERSIA_DATALOADER_PY_ENTRY_PATH"},
	{"enableMetrics", "enable_metrics"},
	{"logLevel", "log_level"},
	{"restartPolicy", "restart_policy"},
	{"imagePullPolicy", "image_pull_policy"},
	{"nnWorker.nprocPerNode", "trainer.nproc_per_node nnWorker.nproc_per_node"},
	{"nnWorker", "trainer"}, // after its fields
	{"embeddingWorker", "middlewareServer middleware_server"},
	{"embeddingParameterServer", "embeddingServer embedding_server"},
}

// natsSpellings are the fields of a NatsCluster for which a stack has settings. The NATS
// operator reads resources only from pod, but PERSIA's examples have them at the top.
var natsSpellings = []spelling{
	{"size", "size"},
	{"version", "version"},
	{"image", "serverImage"},
	{"maxPayload", "natsConfig.maxPayload"},
	{"resources", "pod.resources resources"},
	{"antiAffinity", "pod.antiAffinity"},
	{"metrics", "pod.enableMetrics"},
}

// OlderNames maps the names of job fields in older releases of PERSIA to the fields, as names
// joined by dots, without those within an object.
func OlderNames() map[string]string {
	names := map[string]string{}
	for _, s := range jobSpellings {
		for written := range strings.FieldsSeq(s.written) {
			if !strings.Contains(written, ".") { // the others are only in manifests
				names[written] = s.canonical
			}
		}
	}
	return names
}

// respelled moves the fields of an object with other names to layers of their own, with their canonical names.
func (r *manifestReader) respelled(object Located, spellings []spelling) Layers {
	rest := object.Value.(map[string]any)
	for _, role := range rest {
		readOnly(role)
	}
	layers := Layers{object}
	for _, s := range spellings {
		var first *field.Path
		names := strings.Split(s.canonical, ".")
		for written := range strings.FieldsSeq(s.written) {
			value, at, other := take(rest, written), child(object.At, written), first
			if _, again, _ := unstructured.NestedFieldNoCopy(rest, names...); again {
				other = child(object.At, s.canonical)
			}
			switch {
			case value == nil:
			case other != nil:
				r.Unreadable(at, "sets the same field as %s; remove one of them", other)
			default:
				first = at
				layers = append(layers, nested(names, Located{At: at, Value: value}))
			}
		}
	}
	return layers
}

// nested returns an object in which names lead to a value.
func nested(names []string, value any) any {
	for _, name := range slices.Backward(names) {
		value = map[string]any{name: value}
	}
	return value
}

// take removes the value of a field, whose names are joined by dots, from an object. It returns nil if there is none.
func take(object map[string]any, field string) any {
	names := strings.Split(field, ".")
	value, _, _ := unstructured.NestedFieldNoCopy(object, names...)
	unstructured.RemoveNestedField(object, names...)
	return value
}

// child returns the path of a field, whose names are joined by dots.
func child(at *field.Path, field string) *field.Path {
	names := strings.Split(field, ".")
	return at.Child(names[0], names[1:]...)
}

// readOnly gives the field read_only of the mounts of a role, which PERSIA's documentation has, its name in Kubernetes.
func readOnly(role any) {
	object, _ := role.(map[string]any)
	mounts, _ := object["volumeMounts"].([]any)
	for _, mount := range mounts {
		if mount, ok := mount.(map[string]any); ok && mount["read_only"] != nil && mount["readOnly"] == nil {
			mount["readOnly"] = mount["read_only"]
			delete(mount, "read_only")
		}
	}
}
