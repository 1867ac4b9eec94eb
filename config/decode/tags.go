package decode

import (
	"fmt"
	"reflect"
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
	// positive is true if the user cannot write 0, because it means the default.
	positive bool
	// fallback is the default, or "".
	fallback string
	enum     []string
}

// known caches fieldsOf.
var known sync.Map

// fieldsOf returns the fields of a struct, including fields of embedded structs, by their
// names in JSON.
func fieldsOf(t reflect.Type) map[string]structField {
	if cached, ok := known.Load(t); ok {
		return cached.(map[string]structField)
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
	known.Store(t, fields)
	return fields
}

// promoted reports whether JSON has a field in the object of the struct itself. It returns
// false for a field of an embedded struct with a JSON name, which has an object of its own.
func promoted(t reflect.Type, f reflect.StructField) bool {
	for i := 1; i < len(f.Index); i++ {
		if check.JSONName(t.FieldByIndex(f.Index[:i])) != "" {
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

// fillIn sets the zero fields of an object to their defaults.
func fillIn(out reflect.Value) {
	if out.Kind() != reflect.Struct {
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

// set parses a text into a value.
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

// enumerations reports each value that the enumeration of its field f does not list.
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
		for name, f := range fieldsOf(value.Type()) {
			d.enumerations(path.Child(name), value.FieldByIndex(f.index), &f)
		}
	case reflect.String:
		// The program fills in omitted fields later, from other fields.
		if f != nil && f.enum != nil && !(f.optional && value.String() == "") {
			check.OneOf(d.Problems, path, value.String(), f.enum...)
		}
	}
}
