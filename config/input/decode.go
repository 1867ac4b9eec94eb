package input

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Decode decodes a value of the tree that [ParseJSON] returns into a pointer, fills in defaults, and
// checks what the tags of fields say.
func Decode(p *Problems, path *field.Path, value any, into any) {
	d, out := decoder{Problems: p}, reflect.ValueOf(into).Elem()
	fillIn(out)
	d.decode(path, value, out)
	d.check(path, out, nil)
}

// Defaults fills in the defaults of the zero value that a pointer refers to.
func Defaults(into any) { fillIn(reflect.ValueOf(into).Elem()) }

// ParseJSON parses JSON, with numbers as [json.Number]. It returns other text as a string, because
// Pulumi returns strings without quotes.
func ParseJSON(text string) any {
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

// Located is a value in the tree that the user wrote at another path.
type Located struct {
	At    *field.Path
	Value any
}

// Layers are values of the tree for the same object. Later ones take precedence, field by field, except in
// lists, dictionaries, and objects behind pointers, which they replace.
type Layers []any

type decoder struct {
	*Problems
	located move
	unread  string // why fields that a struct does not have are not read; if empty, problems suggest other fields
}

// move says where the user wrote the values at and below a path of the tree.
type move struct{ to, from string }

func (m move) of(path *field.Path) string { return m.from + strings.TrimPrefix(path.String(), m.to) }

// decode decodes one value. A null counts as omitted.
func (d decoder) decode(path *field.Path, in any, out reflect.Value) {
	switch value := in.(type) {
	case Layers:
		for _, layer := range value {
			d.decode(path, layer, out)
		}
		return
	case Located:
		d.located = move{path.String(), value.At.String()}
		in = value.Value
	}
	_, isObject := in.(map[string]any)
	d.locate(path, isObject && out.Kind() == reflect.Struct)
	if in == nil {
		return
	}
	d.Give(path)
	switch leaf := out.Addr().Interface().(type) {
	case *any:
		*leaf = in
		return
	case *map[string]any:
		*leaf, _ = expect[map[string]any](d, path, in, out, "an object")
		return
	case *resource.Quantity:
		d.quantity(path, in, leaf)
		return
	case json.Unmarshaler:
		d.leaf(path, in, out, "")
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
		if in != "" { // which counts as omitted
			d.leaf(path, in, out, "must be a string; put it in quotes")
		}
	case reflect.Bool:
		d.leaf(path, in, out, "must be true or false, without quotes")
	case reflect.Float64:
		d.leaf(path, in, out, "must be a number, without quotes")
	default:
		d.leaf(path, in, out, "must be an integer, without quotes")
	}
}

func (d decoder) object(path *field.Path, object map[string]any, out reflect.Value) {
	fields := fieldsOf(out.Type())
	for _, name := range slices.Sorted(maps.Keys(object)) {
		in, at := object[name], path.Child(name)
		if f, ok := fields[name]; ok {
			if f.Tag.Get("list") != "" {
				in = d.joined(at, in)
			}
			d.decode(at, in, out.FieldByIndex(f.Index))
			continue
		}
		d.locate(at, false)
		if d.unread != "" {
			d.unreadable(at, in, d.unread)
			continue
		}
		if instead := d.Absent[index.ReplaceAllString(at.String(), "[]")]; instead != "" {
			d.Unreadable(at, "%s", instead)
			continue
		}
		names := slices.Sorted(maps.Keys(fields))
		if near := Nearest(name, names); len(near) > 0 {
			d.misspelt(path, slices.DeleteFunc(slices.Clone(near), func(name string) bool { return object[name] != nil }))
			d.Unreadable(at, "unknown field; did you mean %s?", Or(near))
		} else {
			d.Unreadable(at, "unknown field; the fields here are %s", strings.Join(names, ", "))
		}
	}
}

// joined returns a list of strings as one, with commas, for a string with the tag list, or another value as it is.
func (d decoder) joined(path *field.Path, in any) any {
	if text, written := in.(string); written && strings.Contains(text, ",") {
		d.Undecodable(path, text, "must be one name, or a list like [a, b]")
		return nil
	}
	list, _ := in.([]any)
	words := make([]string, len(list))
	for i, word := range list {
		text, ok := word.(string)
		if words[i] = text; !ok || strings.Contains(text, ",") {
			return in
		}
	}
	if len(list) == 0 {
		return in
	}
	return strings.Join(words, ",")
}

// locate records where the user wrote the value at a path. A further layer of an object leaves the place of
// the first one, for fields that no layer has.
func (d decoder) locate(path *field.Path, isObject bool) {
	if d.located.to == "" {
		return
	}
	to := path.String()
	if _, again := d.written[to]; again {
		if isObject {
			return
		}
		maps.DeleteFunc(d.written, func(inner, _ string) bool { return within(inner, to) })
	}
	d.move(to, d.located.of(path))
}

func (d decoder) dictionary(path *field.Path, object map[string]any, out reflect.Value) {
	out.Set(reflect.MakeMap(out.Type()))
	for _, name := range slices.Sorted(maps.Keys(object)) {
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

func (d decoder) quantity(path *field.Path, in any, out *resource.Quantity) {
	q, err := ParseQuantity(fmt.Sprint(in))
	if err != nil {
		d.wrong(path, in, reflect.ValueOf(out).Elem(), err.Error())
		return
	}
	*out = q
}

// leaf decodes a value as package json does. A problem says what it must be, or what its type has to say about it.
func (d decoder) leaf(path *field.Path, in any, out reflect.Value, must string) {
	text, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(text, out.Addr().Interface())
	}
	if err != nil {
		d.wrong(path, in, out, cmp.Or(must, err.Error()))
	}
}

// wrong reports a value that cannot be decoded. It does not print objects, lists, or anything
// written for a type that contains secrets.
func (d decoder) wrong(path *field.Path, in any, out reflect.Value, detail string) {
	switch in.(type) {
	case map[string]any:
		in, detail = field.OmitValueType{}, strings.TrimSuffix(detail, "; put it in quotes")+" (it is an object)"
	case []any:
		in, detail = field.OmitValueType{}, strings.TrimSuffix(detail, "; put it in quotes")+" (it is a list)"
	}
	if len(secretFields(out.Type())) > 0 {
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

// structField is a field of a struct.
type structField struct {
	reflect.StructField
	name     string // in JSON
	fallback string // the default, or ""
	optional bool
}

// known caches fieldsOf.
var known sync.Map

// fieldsOf returns the fields of a struct, including fields of embedded structs, by their names in JSON.
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
		fields[name] = structField{f, name, fallback, optional}
	}
	known.Store(t, fields)
	return fields
}

// promoted reports whether JSON has a field in the object of the struct itself. It returns
// false for a field of an embedded struct with a JSON name, which has an object of its own.
func promoted(t reflect.Type, f reflect.StructField) bool {
	for i := 1; i < len(f.Index); i++ {
		if JSONName(t.FieldByIndex(f.Index[:i])) != "" {
			return false
		}
	}
	return true
}

// bound returns the bound that a tag contains, or another one if there is no tag.
func bound(tag string, other int64) int64 {
	if tag == "" {
		return other
	}
	n, err := strconv.ParseInt(tag, 10, 64)
	if err != nil {
		panic(err) // a mistake in a tag
	}
	return n
}

// fillIn sets the zero fields of an object to their defaults.
func fillIn(out reflect.Value) {
	if out.Kind() != reflect.Struct {
		return
	}
	for _, f := range fieldsOf(out.Type()) {
		switch value := out.FieldByIndex(f.Index); {
		case f.fallback == "":
			fillIn(value)
		case value.IsZero():
			if err := set(value, f.fallback); err != nil {
				panic(fmt.Sprintf("default of %s.%s: %v", out.Type(), f.name, err))
			}
		}
	}
}

// set decodes the text of a default into a value.
func set(value reflect.Value, text string) error {
	var in any = text
	if value.Kind() == reflect.Slice {
		var list []any
		for _, part := range Listed(text) {
			list = append(list, part)
		}
		in = list
	} else if value.Kind() != reflect.String {
		in = ParseJSON(text)
	}
	p := &Problems{}
	decoder{Problems: p}.decode(field.NewPath("default"), in, value)
	return p.Err()
}

// check reports each value that the tags of its field f refuse. The program fills in omitted values later,
// from other fields.
func (d decoder) check(path *field.Path, value reflect.Value, f *structField) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			d.check(path, value.Elem(), f)
		}
	case reflect.Slice:
		for i := range value.Len() {
			d.check(path.Index(i), value.Index(i), f)
		}
		if f != nil && f.Tag.Get("unique") != "" {
			d.unique(path, value, f.Tag.Get("unique"))
		}
	case reflect.Map:
		if texts, ok := value.Interface().(map[string]string); ok && f != nil {
			switch f.Tag.Get("form") {
			case "labels":
				Labels(d.Problems, path, texts)
			case "annotations":
				Annotations(d.Problems, path, texts)
			}
			return
		}
		for _, name := range value.MapKeys() {
			d.check(path.Key(name.String()), value.MapIndex(name), f)
		}
	case reflect.Struct:
		for name, f := range fieldsOf(value.Type()) {
			d.check(path.Child(name), value.FieldByIndex(f.Index), &f)
		}
	case reflect.String:
		switch secret, isSecret := value.Interface().(Secret); {
		case f == nil || f.optional && value.String() == "":
		case isSecret:
			Password(d.Problems, path, secret)
		case f.Tag.Get("enum") != "":
			OneOf(d.Problems, path, value.String(), Listed(f.Tag.Get("enum"))...)
		default:
			Form(d.Problems, path, f.Tag.Get("form"), value.String())
		}
	case reflect.Int:
		if f != nil {
			d.bounds(path, value.Int(), float64(value.Int()), *f)
		}
	case reflect.Float64:
		if f != nil {
			d.bounds(path, value.Float(), value.Float(), *f)
		}
	}
}

// bounds reports a value, n as a number, outside of its bounds, which are at least 1 if 0 means the default.
func (d decoder) bounds(path *field.Path, value any, n float64, f structField) {
	least, most := bound(f.Tag.Get("min"), math.MinInt64), bound(f.Tag.Get("max"), math.MaxInt64)
	if f.optional {
		if n == 0 && !d.Given(path) {
			return
		}
		if f.Type.Kind() == reflect.Int && f.Tag.Get("min") != "0" {
			least = max(least, 1)
		}
	}
	must, limit := "most", most
	if n < float64(least) {
		must, limit = "least", least
	} else if n <= float64(most) {
		return
	}
	if refused := d.Invalid(path, value, "must be at %s %d", must, limit); f.optional {
		d.Try(refused, false, Edits{path: nil}, "omit it for the default")
	}
}

// unique reports elements of a list that repeat, or elements with the same value of a field.
func (d decoder) unique(path *field.Path, list reflect.Value, name string) {
	values := make([]string, list.Len())
	for i := range values {
		if element := list.Index(i); name == "true" {
			values[i] = element.String()
		} else {
			values[i] = element.FieldByIndex(fieldsOf(element.Type())[name].Index).String()
		}
	}
	Unique(d.Problems, path, strings.TrimPrefix(name, "true"), values)
}
