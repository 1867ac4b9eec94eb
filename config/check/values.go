package check

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// OneOf reports a value that is not among those allowed. A value that the tag enum
// of a field restricts needs no such call.
func OneOf[T ~string](p *Problems, path *field.Path, value T, allowed ...T) bool {
	if slices.Contains(allowed, value) {
		return true
	}
	texts := make([]string, len(allowed))
	for i, one := range allowed {
		texts[i] = string(one)
	}
	if value == "" {
		p.Required(path, "write %s", Or(texts))
	} else {
		p.Invalid(path, value, "must be %s", Or(texts))
	}
	return false
}

// OnlyFields refuses all written fields of a struct but those that are allowed. What
// completes the sentence "nothing of an existing cluster is created or changed".
func OnlyFields(p *Problems, path *field.Path, of any, what string, allowed ...string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if at := path.Child(name); p.Given(at) && !slices.Contains(allowed, name) {
			p.Forbidden(at, "the stack does not create or change anything %s; remove it, and write only %s", what, And(allowed))
		}
	}
}

// Unique calls report with the index of each value that an earlier one equals, and
// with the index of the first of them. Zero values are left out: a missing value is
// reported for that already.
func Unique[T comparable](values []T, report func(i, first int)) {
	var missing T
	seen := map[T]int{}
	for i, value := range values {
		first, ok := seen[value]
		switch {
		case value == missing:
		case ok:
			report(i, first)
		default:
			seen[value] = i
		}
	}
}

// QuantityForm is a regular expression for amounts of a resource. It leaves out
// decimal exponents: comparing 1e99999999 takes a minute.
const QuantityForm = `^[+-]?[0-9.]{1,20}([numkMGTPE]|[KMGTPE]i)?$`

var quantityForm = regexp.MustCompile(QuantityForm)

// ParseQuantity reads an amount of a resource in Kubernetes' notation.
func ParseQuantity(text string) (resource.Quantity, error) {
	if quantityForm.MatchString(text) {
		if q, err := resource.ParseQuantity(text); err == nil {
			return q, nil
		}
	}
	return resource.Quantity{}, errors.New("must be a quantity like 80, 500m or 600Gi, without spaces")
}
