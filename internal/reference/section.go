package reference

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"persia/config"
)

// Section describes the value of a key, or an object inside of one.
type Section struct {
	// Name is the name of the object's type, and empty for the value of a key that
	// is no object. Each section has another.
	Name string
	// Path is where the value stands, as errors print it, but with [] for the
	// index in a list and [NAME] for a name in an object of like ones:
	// persia:nodePools[].gpu.
	Path string
	// Also are the other places of an object that stands in several.
	Also []string
	// Key says that this is a key of the stack file.
	Key bool
	// Kubernetes says that the object is one of Kubernetes, which describes it in a
	// reference of its own.
	Kubernetes bool
	// Type is that of the whole value: a list of objects, say.
	Type Type
	// Doc describes the value, or each object of a list. Like all texts here it
	// is one paragraph, in which `backticks` mark what is written as it is.
	Doc string
	// Fields are those of the object, in the order of the source.
	Fields []Field
}

// Field is a field of an object.
type Field struct {
	Name string
	Type Type
	// Required fields are written always. All others have a default.
	Required bool
	// Default is what a field that is left out has always, as it is written, and
	// empty where that is nothing, or depends on other fields.
	Default string
	// Least is the least that an integer may be, if it is bounded.
	Least *int
	// Beside says that the field is none of a PersiaJob, and stands in the stack file
	// next to the name of a manifest.
	Beside bool
	// Change is what Google Cloud does when the field is changed: update or
	// replace, or empty where that is not known.
	Change string
	Doc    string
}

// Sections describes all keys of a stack file, in their order, each followed by
// the objects inside of it, those of Kubernetes among them. The folder is that of
// package config, whose comments are read from its source. The error names
// everything that has none.
func Sections(dir string) ([]*Section, error) {
	c, err := readComments(dir)
	if err != nil {
		return nil, err
	}
	w := &walker{comments: c, objects: map[reflect.Type]*Section{}}
	for _, key := range config.Keys() {
		w.key(key)
	}
	for _, s := range w.sections {
		if s.Doc == "" && !s.Kubernetes {
			w.problem("%s: nothing describes it; write a doc comment of its type", s.Path)
		}
	}
	return w.sections, errors.Join(w.problems...)
}

// walker visits the types of package config.
type walker struct {
	comments *comments
	sections []*Section
	// objects are the sections that describe a struct type.
	objects  map[reflect.Type]*Section
	problems []error
}

func (w *walker) key(name string) {
	f, ok := config.StackField(name)
	if !ok {
		w.problem("%s: no field of config.Stack takes it", name)
		return
	}
	s := w.section(name, f.Type)
	s.Key = true
	if doc := w.comments.fields[nameOf(reflect.TypeFor[config.Stack]())+"."+f.Name]; doc != "" {
		s.Doc = doc
	}
}

// section adds the description of a value, and of the objects inside of it.
func (w *walker) section(path string, t reflect.Type) *Section {
	s := &Section{Path: path}
	w.sections = append(w.sections, s)
	if object, inside := unwrap(t); isObject(object) {
		w.objects[object] = s
		s.Name, s.Kubernetes, s.Doc = w.sectionName(object), !isOwn(object), w.aboutType(object)
		for _, f := range fieldsOf(object) {
			s.Fields = append(s.Fields, w.field(path+inside, f))
		}
	}
	s.Type = w.typeOf(path, t)
	return s
}

func (w *walker) field(path string, f structField) Field {
	path += "." + f.name
	w.visit(path, f.Type)
	field := Field{
		Name:     f.name,
		Type:     w.typeOf(path, f.Type),
		Required: !f.optional,
		Beside:   f.Tag.Get("beside") == "manifest",
		Change:   f.Tag.Get("change"),
		Doc:      w.describe(f),
	}
	if isOwn(f.owner) {
		inner := field.Type.innermost()
		readTags(f, inner)
		if inner.Kubernetes != "" && inner.URL == "" {
			w.problem("%s: package reference does not know where %s is described; add it to kubernetes", path, f.Type)
		}
		field.Least = least(f)
		field.Default = defaultOf(f, field.Type.Kind)
		if field.Default != "" && !strings.Contains(field.Doc, "Default ") {
			field.Doc += " Default " + inYAML(field.Default, field.Type.Kind) + "."
		}
	}
	return field
}

// readTags adds to a type what the tags of a field say of it.
func readTags(f structField, t *Type) {
	if values := f.Tag.Get("enum"); values != "" {
		described := t.Values
		t.Values = nil
		for _, text := range strings.Split(values, ",") {
			value := Value{Text: text}
			if i := slices.IndexFunc(described, func(v Value) bool { return v.Text == text }); i >= 0 {
				value = described[i]
			}
			t.Values = append(t.Values, value)
		}
	}
	if f.Tag.Get("form") == "quantity" {
		t.Kind, t.Quoted = Quantity, true
	}
}

// least is the least that an integer of package config may be: all of them count
// something, and 0 stands for the default where there is one.
func least(f structField) *int {
	switch {
	case f.Tag.Get("min") == "0":
		return new(0)
	case f.Type.Kind() == reflect.Int && f.optional:
		return new(1)
	case f.Type.Kind() == reflect.Int, f.Type == reflect.TypeFor[*int]():
		return new(0)
	}
	return nil
}

// defaultOf is the default that the tag of a field states. What may be true is false
// without one. That of a list is described in words.
func defaultOf(f structField, kind Kind) string {
	switch text := f.Tag.Get("default"); {
	case kind == List:
		return ""
	case text == "" && f.Type.Kind() == reflect.Bool:
		return "false"
	default:
		return text
	}
}

// inYAML writes a value as a stack file has it: a text that looks like a number is in
// quotes.
func inYAML(value string, kind Kind) string {
	if _, err := strconv.ParseFloat(value, 64); err == nil && kind == Text {
		return strconv.Quote(value)
	}
	return value
}

// visit adds a section for an object, or to its section one more place.
func (w *walker) visit(path string, t reflect.Type) {
	object, _ := unwrap(t)
	if !isObject(object) {
		return
	}
	if s, ok := w.objects[object]; ok {
		s.Also = append(s.Also, path)
		return
	}
	w.section(path, t)
}

// sectionName is the name of the section of an object's type. Kubernetes has a
// Volume too, and so may have two packages.
func (w *walker) sectionName(object reflect.Type) string {
	if !isOwn(object) {
		return "Kubernetes" + object.Name()
	}
	for _, s := range w.sections {
		if s.Name == object.Name() {
			return capitalized(path.Base(object.PkgPath())) + object.Name()
		}
	}
	return object.Name()
}

// nameOf is the name of a type with that of its package, as comments are kept by.
func nameOf(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

// aboutType describes the type of an object.
func (w *walker) aboutType(object reflect.Type) string {
	if isOwn(object) {
		return w.comments.types[nameOf(object)]
	}
	return aboutKubernetes(object, "")
}

// describe is the doc comment of a field, or the beginning of its type's.
func (w *walker) describe(f structField) string {
	if !isOwn(f.owner) {
		return aboutKubernetes(f.owner, f.name)
	}
	name := nameOf(f.owner) + "." + f.Name
	if doc := w.comments.fields[name]; doc != "" {
		return doc
	}
	if t, _ := unwrap(f.Type); isOwn(t) && w.comments.types[nameOf(t)] != "" {
		return firstSentence(w.comments.types[nameOf(t)])
	}
	w.problem("%s: neither the field nor its type has a doc comment; write one", name)
	return ""
}

func (w *walker) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Errorf(format, args...))
}

// structField is a field as it is written in a stack file.
type structField struct {
	reflect.StructField
	name     string
	optional bool
	// owner is the struct that declares the field: an embedded one, maybe.
	owner reflect.Type
}

// fieldsOf lists the fields of a struct, those of embedded structs among them.
func fieldsOf(t reflect.Type) []structField {
	var fields []structField
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		owner := t
		if outer := f.Index[:len(f.Index)-1]; len(outer) > 0 {
			embedded := t.FieldByIndex(outer)
			if named, _, _ := strings.Cut(embedded.Tag.Get("json"), ","); named != "" {
				continue // in an object of that name
			}
			owner = embedded.Type
		}
		fields = append(fields, structField{f, name, strings.Contains(options, "omitempty") || f.Tag.Get("default") != "", owner})
	}
	return fields
}
