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
	// Name is the unique name of the object's type, or "" for a key with another value.
	Name string
	// Path is the path of the value as in errors, with [] for indexes and [NAME] for names
	// that the user chooses, like persia:nodePools[].gpu.
	Path string
	// Key is true for a key of the stack file.
	Key bool
	// Kubernetes is true for an object that the Kubernetes API reference describes.
	Kubernetes bool
	// Type is the type of the whole value, for example a list of objects.
	Type Type
	// Doc describes the value, or each object of a list, in one paragraph with `code` in
	// backticks.
	Doc string
	// Fields are the fields of the object, in the order of the source.
	Fields []Field
}

// Field is a field of an object.
type Field struct {
	Name string
	Type Type
	// Required fields have no default.
	Required bool
	// Default is the fixed default in YAML, or "" if there is none or if it depends on other
	// fields.
	Default string
	// Least is the minimum of an integer, or nil.
	Least *int
	// Beside is true for a field that no PersiaJob has, and that stays in the stack file
	// next to manifest.
	Beside bool
	// Change names how Google Cloud carries out a change of the field: update, replace, or "" if
	// that is unknown.
	Change string
	Doc    string
}

// Sections describes all keys of a stack file, in their order, each followed by the objects in
// it, including objects of Kubernetes. Dir is the folder of package config, from whose source it
// reads the comments. The error lists everything without a comment.
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

// section adds the description of a value and of the objects in it.
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

// readTags adds the tags of a field to its type.
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

// least returns the minimum of an integer of package config: none is negative, and if there is
// a default, 0 would mean that.
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

// defaultOf returns the default in the tag of a field, and false for a boolean without one. It
// returns "" for lists, whose comments state the default.
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

// inYAML returns a value in YAML, with quotes around a string that looks like a number.
func inYAML(value string, kind Kind) string {
	if _, err := strconv.ParseFloat(value, 64); err == nil && kind == Text {
		return strconv.Quote(value)
	}
	return value
}

// visit adds a section for an object that has none yet.
func (w *walker) visit(path string, t reflect.Type) {
	object, _ := unwrap(t)
	if !isObject(object) {
		return
	}
	if w.objects[object] != nil {
		return
	}
	w.section(path, t)
}

// sectionName returns a unique name for the section of an object. Kubernetes or another package
// may have a type of the same name.
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

// nameOf returns PACKAGE.TYPE, the key of comments.
func nameOf(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

// aboutType describes the type of an object.
func (w *walker) aboutType(object reflect.Type) string {
	if isOwn(object) {
		return w.comments.types[nameOf(object)]
	}
	return aboutKubernetes(object, "")
}

// describe returns the doc comment of a field, or the first sentence of its type's.
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

// structField is a field with its name in a stack file.
type structField struct {
	reflect.StructField
	name     string
	optional bool
	// owner is the struct that declares the field, which may be embedded.
	owner reflect.Type
}

// fieldsOf returns the fields of a struct, including fields of embedded structs.
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
