// Package manifest reads the Kubernetes manifests that the jobs of a stack file
// name, and merges them with what the stack file says into one tree, in which every
// field has its canonical name. The tree is decoded like any other.
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

// Tree is what a stack says of its jobs and of NATS, wherever that is written.
type Tree struct {
	// Jobs is the list of jobs: one for each PersiaJob of a manifest, and one for
	// each entry of the stack file that names none. It is nil if nothing is written.
	Jobs any
	// NATS is the object of NATS settings, nil if nothing is written.
	NATS any
	// Written are the paths at which values were written that the tree has at other
	// paths, as [check.Problems.Written] takes them.
	Written map[string]string
}

// Keys are the values of the two keys that manifests add to, nil if they are not
// written, and where they stand.
type Keys struct {
	JobsPath, NATSPath *field.Path
	Jobs, NATS         any
}

// Read reads the manifests that jobs name, from files, and merges them. What the
// stack file has wins. StackOnly are the fields of a job, as names joined by dots,
// that no PersiaJob has.
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
	// nats is the NatsCluster that stands with the jobs, if there is one.
	nats    *document
	written map[string]string
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

// mergeJob adds what the stack file has, at from, to the spec of a PersiaJob.
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

// takeNATS takes the one NatsCluster of a stack. Jobs that share it each repeat it in
// their files.
func (r *reader) takeNATS(other *document) {
	switch first := r.nats; {
	case first == nil:
		r.nats = other
	case first.Metadata.Name != other.Metadata.Name || !reflect.DeepEqual(first.Spec, other.Spec):
		r.Forbidden(other.at, "differs from the NATS of %s, but a stack has only one; make them the same, or remove one and set the values in %s", first.at, r.natsPath)
	}
}

// mergeNATS adds what the stack file has to the NatsCluster of the manifests.
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

// moved notes that what the tree has at one path was written at another.
func (r *reader) moved(to, from *field.Path) {
	r.written[to.String()] = from.String()
}

// renamed notes the fields of an object that were written by other names.
func (r *reader) renamed(to, from *field.Path, names renames) {
	for canonical, written := range names {
		r.moved(child(to, strings.Split(canonical, ".")), child(from, strings.Split(written, ".")))
	}
}

// merge adds the fields of an object to another one, and wins over its own. Objects
// that stand in both are merged likewise, but for lists of resources, which name
// everything that a container asks for.
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

// isWhole reports whether an object is replaced, and not merged.
func isWhole(name string) bool { return name == "limits" || name == "requests" }

// leaves lists the paths, within an object, of everything that is no object to
// merge.
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

// deepCopy copies the objects in an object.
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
