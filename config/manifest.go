package config

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
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	yamldocuments "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	persiaJobVersion   = "persia.com/v1"
	natsClusterVersion = "nats.io/v1alpha2"
)

// manifests are the jobs of a stack as they are written: in the stack file, or in
// files that it names.
type manifests struct {
	jobs []writtenJob
	// nats is the NatsCluster that stands beside the jobs, if there is one.
	nats *document
}

// writtenJob is a job that is not decoded yet.
type writtenJob struct {
	// entry is what stands in the stack file.
	entry any
	at    *field.Path
	// manifest is the PersiaJob, or nil where all stands in the stack file.
	manifest *document
}

// document is a Kubernetes object of a manifest.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
		// Namespace is read, so that a manifest may have one. The stack says where
		// its jobs run.
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`

	at *field.Path
}

func (d *document) specPath() *field.Path { return d.at.Child("spec") }

// readManifests reads the list of jobs, and the files that it names.
func (d *decoder) readManifests(at *field.Path, text string, files fs.FS) manifests {
	var found manifests
	list, ok := fromJSON(text).([]any)
	if !ok {
		d.wrong(at, fromJSON(text), "must be a list")
		return found
	}
	for i, entry := range list {
		at := at.Index(i)
		name, ok := manifestOf(entry)
		if !ok {
			found.jobs = append(found.jobs, writtenJob{entry: entry, at: at})
			continue
		}
		before := len(found.jobs)
		for _, document := range d.readManifest(at.Child("manifest"), name, files) {
			switch document.Kind {
			case "PersiaJob":
				found.jobs = append(found.jobs, writtenJob{entry: entry, at: at, manifest: document})
			case "NatsCluster":
				d.natsCluster(&found, document)
			}
		}
		if len(found.jobs) == before && len(d.problems) == 0 {
			d.problems = append(d.problems, field.Invalid(at.Child("manifest"), name, "holds no PersiaJob; write one, or name another file"))
		}
	}
	return found
}

// manifestOf is the file that a job of the stack file names.
func manifestOf(entry any) (string, bool) {
	object, _ := entry.(map[string]any)
	name, ok := object["manifest"].(string)
	return name, ok
}

// natsCluster takes the one NatsCluster of a stack. Jobs that share it each repeat
// it in their files.
func (d *decoder) natsCluster(found *manifests, other *document) {
	switch first := found.nats; {
	case first == nil:
		found.nats = other
	case first.Metadata.Name != other.Metadata.Name || !reflect.DeepEqual(first.Spec, other.Spec):
		d.problems = append(d.problems, field.Forbidden(other.at,
			fmt.Sprintf("is another NATS than that of %s, and a stack has one; make the two alike, or remove one and write what it should be in %s", first.at, natsKey)))
	}
}

// readManifest reads the objects of a file.
func (d *decoder) readManifest(at *field.Path, name string, files fs.FS) []*document {
	text, err := readFile(files, name)
	if err != nil {
		d.problems = append(d.problems, field.Invalid(at, name, err.Error()))
		return nil
	}
	in := field.NewPath(fmt.Sprintf("%s(%s)", at, name))
	raw, err := objectsOf(text)
	if err != nil {
		d.problems = append(d.problems, field.Forbidden(in, "is no YAML: "+strings.Join(strings.Fields(err.Error()), " ")))
		return nil
	}
	var documents []*document
	for i, object := range raw {
		doc := &document{at: in}
		if len(raw) > 1 {
			doc.at = in.Index(i)
		}
		before := len(d.problems)
		d.decode(doc.at, object, reflect.ValueOf(doc).Elem())
		if d.isOurs(doc, len(d.problems) > before) {
			documents = append(documents, doc)
		}
	}
	return documents
}

// isOurs reports whether an object is of a kind that a manifest may hold.
func (d *decoder) isOurs(doc *document, wrong bool) bool {
	versions := map[string]string{"PersiaJob": persiaJobVersion, "NatsCluster": natsClusterVersion}
	version, known := versions[doc.Kind]
	switch {
	case known && doc.APIVersion == version:
		return true
	case wrong:
	case known:
		d.problems = append(d.problems, field.Invalid(doc.at.Child("apiVersion"), doc.APIVersion, fmt.Sprintf("must be %s for a %s", version, doc.Kind)))
	default:
		d.problems = append(d.problems, field.Invalid(doc.at.Child("kind"), doc.Kind, "must be PersiaJob or NatsCluster; apply other objects with kubectl"))
	}
	return false
}

func readFile(files fs.FS, name string) ([]byte, error) {
	clean := path.Clean(name)
	if files == nil || !fs.ValidPath(clean) {
		return nil, errors.New("must lie in the project's directory, or below; write its path from there, like jobs/train.yml")
	}
	text, err := fs.ReadFile(files, clean)
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("is not there; write the path of a file from the project's directory, like jobs/train.yml")
	case errors.As(err, &failed):
		return nil, fmt.Errorf("cannot be read: %w", failed.Err)
	}
	return text, err
}

// objectsOf splits a file into its documents. Those that are empty do not count.
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
		if object := fromJSON(string(converted)); object != nil {
			objects = append(objects, object)
		}
	}
}

// fromJSON reads JSON. What is none is a string that arrived without quotes.
func fromJSON(text string) any {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return text
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return text
	}
	return value
}

// decodeJobs decodes the jobs: of each first its manifest, and then what the stack
// file adds to it.
func (d *decoder) decodeJobs(written []writtenJob) []Job {
	jobs := make([]Job, len(written))
	for i, w := range written {
		job := &jobs[i]
		job.at = w.at
		if w.manifest != nil {
			job.at = w.manifest.specPath()
			job.Name = w.manifest.Metadata.Name
			d.inManifest = true
			d.decode(job.at, w.manifest.Spec, reflect.ValueOf(job).Elem())
			d.inManifest = false
			d.settle()
			d.besides(w)
		}
		d.decode(w.at, w.entry, reflect.ValueOf(job).Elem())
	}
	return jobs
}

// besides notes what of a job with a manifest is written in the stack file: what
// stands there, and what could stand nowhere else.
func (d *decoder) besides(w writtenJob) {
	spec := w.manifest.specPath()
	d.written[spec.Child("name").String()] = w.manifest.at.Child("metadata", "name").String()
	for _, kind := range roleKinds {
		d.written[spec.Child(kind.field, "nodePool").String()] = w.at.Child(kind.field, "nodePool").String()
	}
	entry, _ := w.entry.(map[string]any)
	d.respell(entry, w.at, entry, w.at, jobSpellings)
	for _, names := range leaves(entry) {
		d.written[child(spec, names).String()] = child(w.at, names).String()
	}
}

// decodeNATS decodes the NatsCluster of the manifests, as if it stood at the path.
func (d *decoder) decodeNATS(at *field.Path, doc *document, into *NATS) {
	rest, settings := deepCopy(doc.Spec), map[string]any{}
	d.respell(rest, doc.specPath(), settings, at, natsSpellings)
	d.written[at.Child("name").String()] = doc.at.Child("metadata", "name").String()
	for _, names := range leaves(rest) {
		d.problems = append(d.problems, field.Forbidden(child(doc.specPath(), names),
			"is not read from a manifest; remove it, and see what "+natsKey+" has for it"))
	}
	d.decode(at, settings, reflect.ValueOf(into).Elem())
	into.Name = doc.Metadata.Name
}

// overwritten forgets where the manifest has what the stack file has too.
func (w writtenPaths) overwritten(at *field.Path, text string) {
	object, _ := fromJSON(text).(map[string]any)
	for _, names := range leaves(object) {
		delete(w, child(at, names).String())
	}
}

// deepCopy copies the objects in an object.
func deepCopy(object map[string]any) map[string]any {
	copied := maps.Clone(object)
	for name, value := range copied {
		if inner, ok := value.(map[string]any); ok {
			copied[name] = deepCopy(inner)
		}
	}
	return copied
}
