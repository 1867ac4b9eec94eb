// Package decode decodes a JSON tree into Go values. Unlike encoding/json it is strict, and
// reports all problems with their paths. The tags of fields control it:
//
//   - json gives the name, as for encoding/json. A field with omitempty is optional.
//   - default:"…" is the value of a field that the user omits, or the elements of a list
//     separated by commas. It applies even if the user omits the object around the field,
//     unless that object is a nil pointer.
//   - enum:"A,B" lists the only values of a string, or of each string of a list.
//   - min:"0" allows 0 for an optional integer, where it does not mean the default.
package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// Into decodes a value of the tree that [JSON] returns into a pointer, fills in defaults, and
// checks enumerations.
func Into(p *check.Problems, path *field.Path, value any, into any) {
	d, out := decoder{p}, reflect.ValueOf(into).Elem()
	fillIn(out)
	d.decode(path, value, out)
	d.enumerations(path, out, nil)
}

// Defaults fills in the defaults of the zero value that a pointer refers to.
func Defaults(into any) { fillIn(reflect.ValueOf(into).Elem()) }

// JSON parses JSON, with numbers as [json.Number]. It returns other text as a string, because
// Pulumi returns strings without quotes.
func JSON(text string) any {
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

type decoder struct{ *check.Problems }

// decode decodes one value. A null counts as omitted.
func (d decoder) decode(path *field.Path, in any, out reflect.Value) {
	if in == nil {
		return
	}
	d.Give(path)
	switch leaf := out.Addr().Interface().(type) {
	case *map[string]any:
		*leaf, _ = expect[map[string]any](d, path, in, out, "an object")
		return
	case *resource.Quantity:
		d.quantity(path, in, leaf)
		return
	case json.Unmarshaler:
		d.leaf(path, in, out, leaf)
		return
	}
	switch out.Kind() {
	case reflect.Pointer:
		out.Set(reflect.New(out.Type().Elem()))
		fillIn(out.Elem())
		d.decode(path, in, out.Elem())
	case reflect.Struct:
		if object, ok := expect[map[string]any](d, path, in, out, "an object"); ok {
			d.object(path, object, out)
		}
	case reflect.Map:
		if object, ok := expect[map[string]any](d, path, in, out, "an object"); ok {
			d.dictionary(path, object, out)
		}
	case reflect.Slice:
		if list, ok := expect[[]any](d, path, in, out, "a list"); ok {
			d.list(path, list, out)
		}
	case reflect.String:
		if s, ok := expect[string](d, path, in, out, "a string; put it in quotes"); ok && s != "" {
			out.SetString(s)
			if !holdsSecret(out.Type()) {
				d.WarnOfLookalike(path, s)
			}
		}
	case reflect.Bool:
		if b, ok := expect[bool](d, path, in, out, "true or false, without quotes"); ok {
			out.SetBool(b)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if n, ok := expect[json.Number](d, path, in, out, "an integer, without quotes"); ok {
			d.integer(path, n, out)
		}
	case reflect.Float64:
		if n, ok := expect[json.Number](d, path, in, out, "a number, without quotes"); ok {
			d.number(path, n, out)
		}
	default:
		d.wrong(path, in, out, fmt.Sprintf("cannot be decoded to %s", out.Type()))
	}
}

func (d decoder) object(path *field.Path, object map[string]any, out reflect.Value) {
	fields := fieldsOf(out.Type())
	for _, name := range slices.Sorted(maps.Keys(object)) {
		in, at := object[name], path.Child(name)
		f, ok := fields[name]
		switch {
		case !ok:
			d.Unreadable(at, "%s", unknownField(name, out.Type()))
		case in == nil:
			d.Warn(at, "is null, which counts as omitted, so the default applies; write a value, or remove it")
		case f.positive && isZero(in):
			d.wrong(at, in, out.FieldByIndex(f.index), "must be at least 1; omit it for the default")
		default:
			d.decode(at, in, out.FieldByIndex(f.index))
		}
	}
}

func (d decoder) dictionary(path *field.Path, object map[string]any, out reflect.Value) {
	out.Set(reflect.MakeMap(out.Type()))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		d.WarnOfLookalike(path.Key(name), name)
		value := reflect.New(out.Type().Elem()).Elem()
		fillIn(value)
		d.element(path.Key(name), object[name], value)
		out.SetMapIndex(reflect.ValueOf(name).Convert(out.Type().Key()), value)
	}
}

func (d decoder) list(path *field.Path, list []any, out reflect.Value) {
	out.Set(reflect.MakeSlice(out.Type(), len(list), len(list)))
	for i, in := range list {
		fillIn(out.Index(i))
		d.element(path.Index(i), in, out.Index(i))
	}
}

// element decodes an element of a list or a dictionary, where a null would become an empty value.
func (d decoder) element(path *field.Path, in any, out reflect.Value) {
	if in == nil {
		d.Missing(path, "it is null; write a value, or remove it")
		return
	}
	d.decode(path, in, out)
}

func (d decoder) integer(path *field.Path, n json.Number, out reflect.Value) {
	i, err := n.Int64()
	if err != nil || out.OverflowInt(i) {
		d.wrong(path, n, out, "must be an integer")
		return
	}
	out.SetInt(i)
}

func (d decoder) number(path *field.Path, n json.Number, out reflect.Value) {
	f, err := n.Float64()
	if err != nil {
		d.wrong(path, n, out, "must be a number")
		return
	}
	out.SetFloat(f)
}

func (d decoder) quantity(path *field.Path, in any, out *resource.Quantity) {
	q, err := check.ParseQuantity(fmt.Sprint(in))
	if err != nil {
		d.wrong(path, in, reflect.ValueOf(out).Elem(), err.Error())
		return
	}
	*out = q
}

// leaf decodes a type with its own UnmarshalJSON.
func (d decoder) leaf(path *field.Path, in any, out reflect.Value, leaf json.Unmarshaler) {
	text, err := json.Marshal(in)
	if err == nil {
		err = leaf.UnmarshalJSON(text)
	}
	if err != nil {
		d.wrong(path, in, out, err.Error())
	}
}

// wrong reports a value that cannot be decoded. It does not print objects, lists, or anything
// written for a type that contains secrets.
func (d decoder) wrong(path *field.Path, in any, out reflect.Value, detail string) {
	switch in.(type) {
	case map[string]any:
		in, detail = field.OmitValueType{}, detail+" (it is an object)"
	case []any:
		in, detail = field.OmitValueType{}, detail+" (it is a list)"
	}
	if holdsSecret(out.Type()) {
		in = field.OmitValueType{}
	}
	d.Undecodable(path, in, "%s", detail)
}

// expect returns the value as a T, or reports that it is not one.
func expect[T any](d decoder, path *field.Path, in any, out reflect.Value, want string) (T, bool) {
	value, ok := in.(T)
	if !ok {
		d.wrong(path, in, out, "must be "+want)
	}
	return value, ok
}

// isZero reports whether a value is the number 0.
func isZero(in any) bool {
	n, ok := in.(json.Number)
	if !ok {
		return false
	}
	i, err := n.Int64()
	return err == nil && i == 0
}

// unknownField suggests fields for a name that an object does not have.
func unknownField(name string, object reflect.Type) string {
	names := slices.Sorted(maps.Keys(fieldsOf(object)))
	if near := check.Nearest(name, names); len(near) > 0 {
		return "unknown field; did you mean " + check.Or(near) + "?"
	}
	return "unknown field; the fields here are " + strings.Join(names, ", ")
}
