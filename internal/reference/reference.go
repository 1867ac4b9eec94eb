// Package reference describes stack files for people and for editors.
//
// [Read] collects the keys of a stack file and the objects in them from the types of package
// config and their doc comments. [Reference.Files] describes them in docs/reference and in
// stack.schema.json. After a change in package config,
//
//	go test ./internal/reference -update
//
// writes them all. The tests fail until then.
package reference

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config"
	"persia/config/input"
)

// Reference describes the keys of a stack file, and the objects in them.
type Reference struct {
	// definitions are the schemas of all objects, and types their types in Go, by name.
	definitions jsonschema.Definitions
	types       map[string]reflect.Type
	// comments are the doc comments of package config, by PACKAGE.TYPE and PACKAGE.TYPE.FIELD.
	comments map[string]string
	problems []error
}

// Read reads package config, with the comments in its source. The folder config must be in the
// working directory. The error lists what has no comment.
func Read() (*Reference, error) {
	r := &Reference{types: map[string]reflect.Type{}}
	keyOf := map[string]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config.Stack]()) {
		if key := f.Tag.Get("key"); key != "" {
			keyOf[f.Name] = config.Namespace + ":" + key
		}
	}
	reflector := &jsonschema.Reflector{
		Namer:         r.name,
		Mapper:        readsItself,
		LookupComment: r.comment,
		KeyNamer: func(name string) string {
			if name[0] >= 'a' || strings.Contains(name, "_") {
				return name
			}
			return keyOf[name] // a name in Go; other fields without one in JSON are not in stack files
		},
	}
	if err := reflector.AddGoComments(ownPackages, "config", jsonschema.WithFullComment()); err != nil {
		return nil, err
	}
	r.comments, reflector.CommentMap = reflector.CommentMap, nil
	r.definitions = reflector.Reflect(config.Stack{}).Definitions
	for name, object := range r.definitions {
		for property := range object.Properties.ValuesFromOldest() {
			r.inline(property)
		}
		r.complete(object, name)
	}
	return r, errors.Join(r.problems...)
}

// Files returns the generated files, by their paths in the repository.
func (r *Reference) Files() (map[string]string, error) {
	page := r.page()
	schema, err := r.schema()
	return map[string]string{"docs/reference/configuration.md": page, "stack.schema.json": schema}, err
}

// ownPackages begins the import paths of the program's packages.
const ownPackages = "persia"

func isOwn(t reflect.Type) bool { return strings.HasPrefix(t.PkgPath(), ownPackages+"/") }

// name names the definition of a type.
func (r *Reference) name(t reflect.Type) string {
	name := t.Name()
	if name == "" || !slices.Contains([]reflect.Kind{reflect.Struct, reflect.Map, reflect.Slice}, t.Kind()) {
		return ""
	}
	if !isOwn(t) {
		name = "Kubernetes" + name
	}
	r.types[name] = t
	return name
}

// readsItself returns the schema of a type with its own UnmarshalJSON, or nil.
func readsItself(t reflect.Type) *jsonschema.Schema {
	switch {
	case t == reflect.TypeFor[resource.Quantity]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Pattern: input.QuantityForm}, {Type: "number"}}}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return &jsonschema.Schema{}
	}
	return nil
}

// complete adds to the schema of an object what tags say.
func (r *Reference) complete(object *jsonschema.Schema, name string) {
	fields := r.fields(name)
	hasSecret := slices.ContainsFunc(fields, func(f field) bool { return f.Type == reflect.TypeFor[input.Secret]() })
	for _, f := range fields {
		value := f.value
		if !isOwn(f.owner) {
			continue
		}
		if f.optional {
			object.Required = slices.DeleteFunc(object.Required, func(name string) bool { return name == f.name })
		}
		readTags(value, f)
		// Strings beside a secret may be encrypted too.
		if hasSecret && value.Type == "string" {
			text := &jsonschema.Schema{Type: value.Type, Enum: value.Enum}
			value.Type, value.Enum, value.AnyOf = "", nil, []*jsonschema.Schema{text, {Ref: definition + "secret"}}
		}
	}
}

// readTags adds the tags of a field to the schema of its value.
func readTags(value *jsonschema.Schema, f field) {
	inner := value
	for inner.Items != nil {
		inner = inner.Items
	}
	for _, text := range input.Listed(f.Tag.Get("enum")) {
		if text != "" {
			inner.Enum = append(inner.Enum, text)
		}
	}
	if form := f.Tag.Get("form"); form == "quantity" || form == "bytes" {
		inner.Pattern = input.QuantityForm
	}
	value.Minimum, value.Maximum = json.Number(f.Tag.Get("min")), json.Number(f.Tag.Get("max"))
	if value.Minimum == "" && value.Type == "integer" {
		// None is negative. If a number has a default, 0 means that.
		switch {
		case f.Type.Kind() == reflect.Int && f.optional:
			value.Minimum = "1"
		case f.Type.Kind() == reflect.Int, f.Type == reflect.TypeFor[*int]():
			value.Minimum = "0"
		}
	}
	if f.Tag.Get("list") != "" {
		value.Type, value.AnyOf = "", []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}}}
	}
	fallback := f.Tag.Get("default")
	if fallback == "" && f.Type.Kind() == reflect.Bool {
		fallback = "false"
	}
	if fallback == "" || value.Type == "array" {
		return
	}
	said := fallback
	if _, err := strconv.ParseFloat(fallback, 64); err == nil && value.Type == "string" {
		said = strconv.Quote(fallback)
	}
	value.Default = fallback
	if value.Type == "integer" || value.Type == "boolean" {
		value.Default = json.RawMessage(fallback)
	}
	if !strings.Contains(value.Description, "Default ") {
		value.Description += " Default " + said + "."
	}
}

// inline replaces references to named lists and maps, which have no description of their own.
func (r *Reference) inline(value *jsonschema.Schema) {
	if of := r.definitions[nameIn(value)]; of != nil && of.Properties == nil {
		description := value.Description
		*value = *of
		value.Description = description
	}
	for _, inner := range []*jsonschema.Schema{value.Items, value.AdditionalProperties} {
		if inner != nil {
			r.inline(inner)
		}
	}
}

// object returns the definition of the object in a value, or an empty one.
func (r *Reference) object(value *jsonschema.Schema) *jsonschema.Schema {
	if of := r.definitions[nameIn(innermost(value))]; of != nil {
		return of
	}
	return &jsonschema.Schema{}
}

// innermost returns the value inside of lists and maps.
func innermost(value *jsonschema.Schema) *jsonschema.Schema {
	switch {
	case value.Items != nil:
		return innermost(value.Items)
	case value.AdditionalProperties != nil && value.Properties == nil:
		return innermost(value.AdditionalProperties)
	}
	return value
}

// nameIn returns the name of the definition that a value refers to, or "".
func nameIn(value *jsonschema.Schema) string { return value.Ref[strings.LastIndex(value.Ref, "/")+1:] }

// field is a field of a struct with its name and schema in a stack file. Its owner is the struct that
// declares it, which may be embedded.
type field struct {
	reflect.StructField
	name     string
	value    *schema
	optional bool
	owner    reflect.Type
}

// fields returns the fields of an object, with those that it embeds.
func (r *Reference) fields(object string) []field {
	fields := fieldsOf(r.types[object])
	for i := range fields {
		fields[i].value, _ = r.definitions[object].Properties.Get(fields[i].name)
	}
	return fields
}

func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "":
			fields = append(fields, field{f, name, nil, strings.Contains(options, "omitempty") || f.Tag.Get("default") != "", t})
		case f.Anonymous:
			fields = append(fields, fieldsOf(f.Type)...)
		}
	}
	return fields
}

// comment returns the comment of a type, or of a field. A field without one has the comment of its type: a key
// all of it, and others the first sentence.
func (r *Reference) comment(t reflect.Type, name string) string {
	var f reflect.StructField
	if name != "" {
		f, _ = t.FieldByName(name)
	}
	if !isOwn(t) {
		about, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string })
		if !ok {
			return ""
		}
		name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
		return firstSentence(oneLine(about.SwaggerDoc()[name]))
	}
	key, subject := t.PkgPath()+"."+t.Name(), t.Name()
	if name != "" {
		key, subject = key+"."+name, name
	}
	// Further paragraphs are for readers of the source.
	text, _, _ := strings.Cut(r.comments[key], "\n\n")
	text = withoutSubject(subject, oneLine(text))
	if text != "" || name == "" {
		return text
	}
	of, isKey := f.Type, f.Tag.Get("key") != ""
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, of.Kind()) && (isKey || !isOwn(of)) {
		of = of.Elem()
	}
	if text = r.comment(of, ""); !isKey {
		text = firstSentence(text)
	}
	if text == "" {
		r.problems = append(r.problems, fmt.Errorf("%s.%s: neither the field nor its type has a doc comment; write one", t, name))
	}
	return text
}
