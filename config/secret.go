package config

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Secret is a text that must not be printed. string(secret) reveals it, for the
// one place where it is handed to Pulumi as a secret.
type Secret string

// String keeps the text out of messages.
func (Secret) String() string { return "[secret]" }

// GoString keeps the text out of what %#v prints.
func (Secret) GoString() string { return "[secret]" }

// hide takes the value out of the problems with a path, from the first on. What
// stands in place of a secret, or of an object that should hold one, may be it.
func (d *decoder) hide(path *field.Path, first int) {
	for _, problem := range d.problems[first:] {
		if problem.Field == path.String() {
			problem.BadValue = field.OmitValueType{}
		}
	}
}

// holdsSecret reports whether a value of the type is, or holds, a Secret.
func holdsSecret(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return holdsSecret(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if t.PkgPath() == reflect.TypeFor[Secret]().PkgPath() && holdsSecret(t.Field(i).Type) {
				return true
			}
		}
	}
	return t == reflect.TypeFor[Secret]()
}
