// Package manifest reads the Kubernetes manifests that jobs of a stack file name, and merges
// them with the stack file into one tree, in which all fields have their canonical names.
package manifest

import (
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// Tree holds the jobs and the NATS settings of a stack, from its file and manifests.
type Tree struct {
	// Jobs is the list of jobs: one for each PersiaJob of a manifest, and one for each
	// entry of the stack file without a manifest. It is nil if there is no list.
	Jobs any
	// NATS is the object of NATS settings, or nil if there is none.
	NATS any
	// Written maps paths of the tree to where the user wrote the values, for
	// [check.Problems.Written].
	Written map[string]string
}

// Keys are the values of the two keys that manifests can complete, or nil, and their paths.
type Keys struct {
	JobsPath, NATSPath *field.Path
	Jobs, NATS         any
}

// Read reads the manifests that jobs name from files, and merges them with the stack file,
// which takes precedence. StackOnly are the fields of a job that no PersiaJob has, as names
// joined by dots.
func Read(p *check.Problems, keys Keys, files fs.FS, stackOnly []string) Tree {
	r := &reader{Problems: p, files: files, stackOnly: stackOnly, natsPath: keys.NATSPath, written: map[string]string{}}
	tree := Tree{Jobs: keys.Jobs, NATS: keys.NATS, Written: r.written}
	if list, ok := keys.Jobs.([]any); ok {
		tree.Jobs = r.jobs(keys.JobsPath, list)
	}
	if r.nats != nil {
		tree.NATS = r.mergeNATS(keys.NATS)
	}
	return tree
}

type reader struct {
	*check.Problems
	files     fs.FS
	stackOnly []string
	natsPath  *field.Path
	nats      *document // the NatsCluster in the manifests, or nil
	written   map[string]string
}

// jobs merges each job of the stack file with its manifest.
func (r *reader) jobs(at *field.Path, list []any) []any {
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
func (r *reader) mergeJob(doc *document, from *field.Path, entry map[string]any, to *field.Path) map[string]any {
	spec := doc.at.Child("spec")
	job, names := r.respelled(spec, doc.Spec)
	r.moved(to, spec)
	r.renamed(to, spec, names)
	for _, field := range r.stackOnly {
		names := strings.Split(field, ".")
		if _, ok := take(job, names); ok {
			r.Unreadable(child(spec, names), "is not a field of a PersiaJob; set it in the stack file, next to manifest")
		}
		r.moved(child(to, names), child(from, names))
	}
	r.moved(to.Child("name"), doc.at.Child("metadata", "name"))
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
func (r *reader) takeNATS(other *document) {
	switch first := r.nats; {
	case first == nil:
		r.nats = other
	case first.Metadata.Name != other.Metadata.Name || !reflect.DeepEqual(first.Spec, other.Spec):
		r.Forbidden(other.at, "differs from the NATS of %s, but a stack has only one; make them the same, or remove one and set the values in %s", first.at, r.natsPath)
	}
}

// mergeNATS merges the NatsCluster of the manifests with the stack file.
func (r *reader) mergeNATS(key any) any {
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
func (r *reader) moved(to, from *field.Path) {
	r.written[to.String()] = from.String()
}

// renamed records the fields of an object that the user wrote by other names.
func (r *reader) renamed(to, from *field.Path, names renames) {
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
