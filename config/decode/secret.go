package decode

import (
	"reflect"
	"slices"
)

// Secret is a text that must not be printed. string(secret) reveals it, for the
// one place where it is handed to Pulumi as a secret.
type Secret string

// String keeps the text out of messages.
func (Secret) String() string { return "[secret]" }

// GoString keeps the text out of what %#v prints.
func (Secret) GoString() string { return "[secret]" }

// holdsSecret reports whether a value of the type is, or holds, a Secret.
func holdsSecret(t reflect.Type) bool { return holdsSecretWithin(t, nil) }

func holdsSecretWithin(t reflect.Type, outer []reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return holdsSecretWithin(t.Elem(), outer)
	case reflect.Struct:
		if slices.Contains(outer, t) {
			return false
		}
		for i := range t.NumField() {
			if holdsSecretWithin(t.Field(i).Type, append(outer, t)) {
				return true
			}
		}
	}
	return t == reflect.TypeFor[Secret]()
}
