package input

import (
	"maps"
	"reflect"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Secret is a string that must not be printed. string(secret) reveals it, to hand it to Pulumi
// as a secret.
type Secret string

// String hides the secret from messages.
func (Secret) String() string { return "[secret]" }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return "[secret]" }

// holdsSecret reports whether a type is or contains Secret.
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

// FoundSecrets lists the paths of secrets in a tree.
type FoundSecrets struct {
	// Plain are strings for a [Secret] that are unencrypted in the stack file.
	Plain []*field.Path
	// Sealed are the other strings for a [Secret].
	Sealed []*field.Path
	// Exposed are strings that are encrypted in the stack file, but whose field does not
	// keep them secret.
	Exposed []*field.Path
}

// FindSecrets finds the secrets in a tree that Pulumi returns, with the type into which it is
// decoded. Written is the same value in the stack file, with {secure: …} for encrypted
// strings. It differs from the tree if Pulumi reads another file, or more than one.
func FindSecrets(path *field.Path, tree, written any, into reflect.Type) FoundSecrets {
	var found FoundSecrets
	found.walk(path, tree, written, into)
	return found
}

func (f *FoundSecrets) walk(path *field.Path, tree, written any, into reflect.Type) {
	for into != nil && into.Kind() == reflect.Pointer {
		into = into.Elem()
	}
	secret := into == reflect.TypeFor[Secret]()
	if isSealed(written) && !secret && (into == nil || !holdsSecret(into)) {
		f.Exposed = append(f.Exposed, path)
		return
	}
	switch tree := tree.(type) {
	case map[string]any:
		object, _ := written.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			f.walk(childOf(path, into, name), tree[name], object[name], typeOf(into, name))
		}
	case []any:
		list, _ := written.([]any)
		var inner reflect.Type
		if into != nil && into.Kind() == reflect.Slice {
			inner = into.Elem()
		}
		for i, element := range tree {
			var other any
			if i < len(list) {
				other = list[i]
			}
			f.walk(path.Index(i), element, other, inner)
		}
	case string:
		switch {
		case !secret || tree == "":
		case written == tree:
			f.Plain = append(f.Plain, path)
		default:
			f.Sealed = append(f.Sealed, path)
		}
	}
}

// isSealed reports whether a value in a stack file is encrypted.
func isSealed(written any) bool {
	object, _ := written.(map[string]any)
	_, secure := object["secure"]
	return secure && len(object) == 1
}

// typeOf returns the type of a field of an object, or nil if it is unknown.
func typeOf(object reflect.Type, name string) reflect.Type {
	switch {
	case object == nil:
	case object.Kind() == reflect.Map:
		return object.Elem()
	case object.Kind() == reflect.Struct:
		if f, ok := fieldsOf(object)[name]; ok {
			return object.FieldByIndex(f.index).Type
		}
	}
	return nil
}

func childOf(path *field.Path, object reflect.Type, name string) *field.Path {
	if object != nil && object.Kind() == reflect.Map {
		return path.Key(name)
	}
	return path.Child(name)
}

// envValue matches the path of an environment variable's value.
var envValue = regexp.MustCompile(`\.env\[\d+\]\.value$`)

// Report refuses secrets in the value of a key that are not Pulumi secrets, and Pulumi secrets
// that would be exposed. isSecret is whether Pulumi treats anything in the value as a secret.
func (f *FoundSecrets) Report(p *Problems, key *field.Path, isSecret bool) {
	plain := f.Plain
	if !isSecret {
		plain = append(plain, f.Sealed...)
	}
	for _, path := range plain {
		p.Forbidden(path, "is in plain text, so treat it as compromised; choose a new value, and set it with pulumi config set --secret --path '%s'", path)
	}
	const exposed = "is a Pulumi secret, which would be stored in plain text in the cluster and in Pulumi's state; "
	for _, path := range f.Exposed {
		if envValue.MatchString(path.String()) {
			p.Forbidden(path, exposed+"put it in a Kubernetes Secret, and reference that in valueFrom.secretKeyRef")
			continue
		}
		p.Forbidden(path, exposed+"set it without --secret, or remove it")
	}
	if isSecret && len(f.Sealed)+len(f.Plain)+len(f.Exposed) == 0 {
		p.Forbidden(key, "contains a secret, which would be stored in plain text in the cluster and in Pulumi's state; set values that are not secret without --secret, and for others reference a Kubernetes Secret in valueFrom.secretKeyRef of an environment variable")
	}
}
