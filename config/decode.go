package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// decoder decodes JSON as encoding/json does, but strictly: names are matched
// exactly, unknown fields are refused, and every problem is reported with its
// path instead of the first one without.
type decoder struct {
	problems field.ErrorList
	written  writtenPaths
	// settled is how many of the problems have the path that is written.
	settled int
	// inManifest says that what is decoded stands in a PersiaJob.
	inManifest bool
}

// decodeText decodes the value of a key. A string arrives without quotes, and
// so text that is not JSON is a string.
func (d *decoder) decodeText(path *field.Path, text string, into any) {
	if s, ok := into.(*string); ok {
		*s = text
		return
	}
	d.decode(path, fromJSON(text), reflect.ValueOf(into).Elem())
}

// decode decodes one value. A null is as if nothing was written.
func (d *decoder) decode(path *field.Path, in any, out reflect.Value) {
	if in == nil {
		return
	}
	if holdsSecret(out.Type()) {
		defer d.hide(path, len(d.problems))
	}
	switch leaf := out.Addr().Interface().(type) {
	case *map[string]any:
		*leaf, _ = expect[map[string]any](d, path, in, "an object")
		return
	case *resource.Quantity:
		d.quantity(path, in, leaf)
		return
	case json.Unmarshaler:
		d.leaf(path, in, leaf)
		return
	}
	switch out.Kind() {
	case reflect.Pointer:
		out.Set(reflect.New(out.Type().Elem()))
		d.decode(path, in, out.Elem())
	case reflect.Struct:
		if object, ok := expect[map[string]any](d, path, in, "an object"); ok {
			d.object(path, object, out)
		}
	case reflect.Map:
		if object, ok := expect[map[string]any](d, path, in, "an object"); ok {
			d.dictionary(path, object, out)
		}
	case reflect.Slice:
		if list, ok := expect[[]any](d, path, in, "a list"); ok {
			d.list(path, list, out)
		}
	case reflect.String:
		if s, ok := expect[string](d, path, in, "a string; put it in quotes"); ok {
			out.SetString(s)
		}
	case reflect.Bool:
		if b, ok := expect[bool](d, path, in, "true or false, without quotes"); ok {
			out.SetBool(b)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if n, ok := expect[json.Number](d, path, in, "an integer, without quotes"); ok {
			d.integer(path, n, out)
		}
	case reflect.Float64:
		if n, ok := expect[json.Number](d, path, in, "a number, without quotes"); ok {
			d.number(path, n, out)
		}
	default:
		d.wrong(path, in, fmt.Sprintf("cannot be decoded to %s", out.Type()))
	}
}

func (d *decoder) object(path *field.Path, object map[string]any, out reflect.Value) {
	if out.Type() == reflect.TypeFor[Job]() {
		d.respell(object, path, object, path, jobSpellings)
	}
	fields := fieldsOf(out.Type())
	for name, in := range object {
		at := path.Child(name)
		f, ok := fields[name]
		if !ok {
			d.problems = append(d.problems, field.Forbidden(at, unknownField(name, out.Type())))
			continue
		}
		if d.inManifest && f.beside {
			d.problems = append(d.problems, field.Forbidden(at, "is no field of a PersiaJob; write it in the stack file, beside manifest"))
			continue
		}
		if f.defaulted && isZero(in) {
			d.wrong(at, in, "must be at least 1; leave the field out for its default")
			continue
		}
		d.decode(at, in, out.FieldByIndex(f.index))
	}
}

func (d *decoder) dictionary(path *field.Path, object map[string]any, out reflect.Value) {
	out.Set(reflect.MakeMap(out.Type()))
	for name, in := range object {
		value := reflect.New(out.Type().Elem()).Elem()
		d.decode(path.Key(name), in, value)
		out.SetMapIndex(reflect.ValueOf(name).Convert(out.Type().Key()), value)
	}
}

func (d *decoder) list(path *field.Path, list []any, out reflect.Value) {
	out.Set(reflect.MakeSlice(out.Type(), len(list), len(list)))
	for i, in := range list {
		d.decode(path.Index(i), in, out.Index(i))
	}
}

func (d *decoder) integer(path *field.Path, n json.Number, out reflect.Value) {
	i, err := n.Int64()
	if err != nil || out.OverflowInt(i) {
		d.wrong(path, n, "must be an integer")
		return
	}
	out.SetInt(i)
}

func (d *decoder) number(path *field.Path, n json.Number, out reflect.Value) {
	f, err := n.Float64()
	if err != nil {
		d.wrong(path, n, "must be a number")
		return
	}
	out.SetFloat(f)
}

func (d *decoder) quantity(path *field.Path, in any, out *resource.Quantity) {
	q, err := parseQuantity(fmt.Sprint(in))
	if err != nil {
		d.wrong(path, in, err.Error())
		return
	}
	*out = q
}

// leaf lets a type decode itself.
func (d *decoder) leaf(path *field.Path, in any, out json.Unmarshaler) {
	text, err := json.Marshal(in)
	if err == nil {
		err = out.UnmarshalJSON(text)
	}
	if err != nil {
		d.wrong(path, in, err.Error())
	}
}

// wrong reports a value that cannot be decoded. A whole object or list is not
// printed.
func (d *decoder) wrong(path *field.Path, in any, detail string) {
	switch in.(type) {
	case map[string]any:
		in, detail = field.OmitValueType{}, detail+" (it is an object)"
	case []any:
		in, detail = field.OmitValueType{}, detail+" (it is a list)"
	}
	d.problems = append(d.problems, field.TypeInvalid(path, in, detail))
}

// expect returns the value if it is of type T, and reports it if not.
func expect[T any](d *decoder, path *field.Path, in any, want string) (T, bool) {
	value, ok := in.(T)
	if !ok {
		d.wrong(path, in, "must be "+want)
	}
	return value, ok
}

// isZero reports whether the value is the number 0.
func isZero(in any) bool {
	n, ok := in.(json.Number)
	if !ok {
		return false
	}
	i, err := n.Int64()
	return err == nil && i == 0
}

// structField is a field of a struct.
type structField struct {
	index []int
	// defaulted says that 0 stands for a default, and would be written in vain.
	defaulted bool
	// beside says that the field is none of a PersiaJob.
	beside bool
}

// fieldsOf lists the fields of a struct by their names in JSON, those of embedded
// structs among them.
func fieldsOf(t reflect.Type) map[string]structField {
	fields := map[string]structField{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		defaulted := f.Type.Kind() == reflect.Int && strings.Contains(options, "omitempty")
		fields[name] = structField{f.Index, defaulted, f.Tag.Get("beside") == "manifest"}
	}
	return fields
}

// unknownField suggests what a name that is no field of an object may be meant to
// be.
func unknownField(name string, object reflect.Type) string {
	names := slices.Sorted(maps.Keys(fieldsOf(object)))
	if near := nearest(name, names); len(near) > 0 {
		return "unknown field; did you mean " + or(near) + "?"
	}
	return "unknown field; the fields here are " + strings.Join(names, ", ")
}
