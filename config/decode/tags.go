package decode

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// structField is a field of a struct.
type structField struct {
	name     string
	index    []int
	optional bool
	// positive says that 0 stands for what is not written, and must not be written.
	positive bool
	// fallback is the default, if there is one.
	fallback string
	enum     []string
}

// ownFields are the fields of struct types, by name.
var ownFields sync.Map

// fieldsOf lists the fields of a struct by their names in JSON, those of embedded
// structs among them.
func fieldsOf(t reflect.Type) map[string]structField {
	if known, ok := ownFields.Load(t); ok {
		return known.(map[string]structField)
	}
	fields := map[string]structField{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !promoted(t, f) {
			continue
		}
		fallback := f.Tag.Get("default")
		optional := strings.Contains(options, "omitempty") || fallback != ""
		fields[name] = structField{
			name:     name,
			index:    f.Index,
			optional: optional,
			positive: f.Type.Kind() == reflect.Int && optional && f.Tag.Get("min") == "",
			fallback: fallback,
			enum:     split(f.Tag.Get("enum")),
		}
	}
	ownFields.Store(t, fields)
	return fields
}

// promoted reports whether JSON has a field in the object of the struct itself: those of
// an embedded struct that has a name are in an object of that name.
func promoted(t reflect.Type, f reflect.StructField) bool {
	for i := 1; i < len(f.Index); i++ {
		if name, _, _ := strings.Cut(t.FieldByIndex(f.Index[:i]).Tag.Get("json"), ","); name != "" {
			return false
		}
	}
	return true
}

func split(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, ",")
}

// fillIn gives the fields of an object that are not set their defaults.
func fillIn(out reflect.Value) {
	if out.Kind() != reflect.Struct || !hasDefaults(out.Type()) {
		return
	}
	for _, f := range fieldsOf(out.Type()) {
		switch value := out.FieldByIndex(f.index); {
		case f.fallback == "":
			fillIn(value)
		case value.IsZero():
			if err := set(value, f.fallback); err != nil {
				panic(fmt.Sprintf("default of %s.%s: %v", out.Type(), f.name, err))
			}
		}
	}
}

var withDefaults sync.Map

// hasDefaults reports whether a struct, or one inside of it, has defaults.
func hasDefaults(t reflect.Type) bool {
	if known, ok := withDefaults.Load(t); ok {
		return known.(bool)
	}
	has := false
	for _, f := range fieldsOf(t) {
		inner := t.FieldByIndex(f.index).Type
		has = has || f.fallback != "" || inner.Kind() == reflect.Struct && hasDefaults(inner)
	}
	withDefaults.Store(t, has)
	return has
}

// set gives a value that of a text.
func set(value reflect.Value, text string) error {
	if quantity, ok := value.Addr().Interface().(*resource.Quantity); ok {
		parsed, err := check.ParseQuantity(text)
		*quantity = parsed
		return err
	}
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		return set(value.Elem(), text)
	case reflect.Slice:
		parts := split(text)
		value.Set(reflect.MakeSlice(value.Type(), len(parts), len(parts)))
		for i, part := range parts {
			if err := set(value.Index(i), part); err != nil {
				return err
			}
		}
	case reflect.String:
		value.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		value.SetBool(b)
		return err
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		value.SetInt(n)
		return err
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		value.SetFloat(n)
		return err
	default:
		return fmt.Errorf("a value of type %s has no defaults", value.Type())
	}
	return nil
}

// enumerations reports each value that is not one of its enumeration. That of the
// field that the value stands in is given.
func (d decoder) enumerations(path *field.Path, value reflect.Value, f *structField) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			d.enumerations(path, value.Elem(), f)
		}
	case reflect.Slice:
		for i := range value.Len() {
			d.enumerations(path.Index(i), value.Index(i), f)
		}
	case reflect.Map:
		for _, name := range value.MapKeys() {
			d.enumerations(path.Key(name.String()), value.MapIndex(name), f)
		}
	case reflect.Struct:
		if !hasEnumerations(value.Type(), nil) {
			return
		}
		for name, f := range fieldsOf(value.Type()) {
			d.enumerations(path.Child(name), value.FieldByIndex(f.index), &f)
		}
	case reflect.String:
		// What is left out is resolved later, from other fields.
		if f != nil && f.enum != nil && !(f.optional && value.String() == "") {
			check.OneOf(d.Problems, path, value.String(), f.enum...)
		}
	}
}

var withEnumerations sync.Map

// hasEnumerations reports whether a type has enumerations in it. Types of
// Kubernetes, which may hold themselves, have none.
func hasEnumerations(t reflect.Type, outer []reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(outer, t) {
		return false
	}
	if known, ok := withEnumerations.Load(t); ok {
		return known.(bool)
	}
	has := false
	for _, f := range fieldsOf(t) {
		has = has || f.enum != nil || hasEnumerations(t.FieldByIndex(f.index).Type, append(outer, t))
	}
	withEnumerations.Store(t, has)
	return has
}
