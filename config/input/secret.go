package input

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Secret is a string that must not be printed. string(secret) reveals it, to hand it to Pulumi as a secret.
type Secret string

// String hides the secret from messages.
func (Secret) String() string { return "[secret]" }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return "[secret]" }

// Password reports a secret that is missing or has several lines.
func Password(p *Problems, path *field.Path, secret Secret) {
	switch {
	case secret == "":
		p.Required(path, "write it with pulumi config set --secret --path '%s'", path)
	case strings.ContainsFunc(string(secret), unicode.IsControl):
		p.Invalid(path, field.OmitValueType{}, "must be a single line; set it again without the line break")
	}
}

// secretFields returns the names, from an object, of the fields that hold a [Secret]. No list holds one.
func secretFields(t reflect.Type) [][]string {
	switch {
	case t == reflect.TypeFor[Secret]():
		return [][]string{nil}
	case t.Kind() == reflect.Pointer:
		return secretFields(t.Elem())
	case t.Kind() != reflect.Struct || strings.HasPrefix(t.PkgPath(), "k8s.io/"):
		return nil
	}
	var found [][]string
	for name, f := range fieldsOf(t) {
		for _, inner := range secretFields(t.FieldByIndex(f.Index).Type) {
			found = append(found, append([]string{name}, inner...))
		}
	}
	return found
}

// envValue matches the path of an environment variable's value.
var envValue = regexp.MustCompile(`\.env\[\d+\]\.value$`)

// CheckSecrets refuses secrets in the value of a key that are not Pulumi secrets, and Pulumi secrets in fields that do
// not keep them secret. Tree is the value that Pulumi returns, into the type that it is decoded to, and isSecret whether
// Pulumi treats anything in it as a secret. Written is the value in the stack file, with {secure: …} for encrypted
// strings. It differs from the tree if Pulumi reads another file, or more than one.
func CheckSecrets(p *Problems, key *field.Path, tree, written any, into reflect.Type, isSecret bool) {
	found := false
	var kept []string // the paths of secrets
	for _, names := range secretFields(into) {
		path := key.Child(names[0], names[1:]...)
		kept = append(kept, path.String())
		text := textAt(tree, names)
		found = found || text != ""
		if text != "" && (!isSecret || textAt(written, names) == text) {
			p.Forbidden(path, "is in plain text, so treat it as compromised; choose a new value, and set it with "+
				"pulumi config set --secret --path '%s'", path)
		}
	}
	const exposed = ", which would be stored in plain text in the cluster and in Pulumi's state; "
	for _, path := range encrypted(key, written) {
		if slices.ContainsFunc(kept, func(secret string) bool { return within(secret, path.String()) }) {
			continue
		}
		found = true
		remedy := "set it without --secret, or remove it"
		if envValue.MatchString(path.String()) {
			remedy = "put it in a Kubernetes Secret, and reference that in valueFrom.secretKeyRef"
		}
		p.Forbidden(path, "is a Pulumi secret%s", exposed+remedy)
	}
	if isSecret && !found {
		p.Forbidden(key, "contains a secret%sset values that are not secret without --secret, and for others reference "+
			"a Kubernetes Secret in valueFrom.secretKeyRef of an environment variable", exposed)
	}
}

// textAt returns a text in an object, or "".
func textAt(value any, names []string) string {
	object, _ := value.(map[string]any)
	text, _, _ := unstructured.NestedString(object, names...)
	return text
}

// encrypted returns the paths of the encrypted strings in a value of a stack file.
func encrypted(key *field.Path, value any) []*field.Path {
	var found []*field.Path
	opens(value, nil, func(path []any, _ string) string {
		at := key
		for _, element := range path {
			if name, ok := element.(string); ok {
				at = at.Child(name)
			} else {
				at = at.Index(element.(int))
			}
		}
		found = append(found, at)
		return ""
	})
	return found
}
