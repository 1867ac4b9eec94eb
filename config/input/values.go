package input

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// OneOf reports a value that is not allowed, and returns whether it is. Fields with the tag
// enum need no such call.
func OneOf[T ~string](p *Problems, path *field.Path, value T, allowed ...T) bool {
	if slices.Contains(allowed, value) {
		return true
	}
	either := Or(Words(allowed, func(one T) string { return string(one) }))
	if value == "" {
		p.Required(path, "write %s", either)
	} else {
		p.Invalid(path, value, "must be %s", either)
	}
	return false
}

// OnlyFields refuses all fields of a struct that the user wrote, except the allowed ones.
// What completes the sentence "the stack does not create or change anything …".
func OnlyFields(p *Problems, path *field.Path, of any, what string, allowed ...string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
		name := JSONName(f)
		if at := path.Child(name); p.Given(at) && !slices.Contains(allowed, name) {
			p.Forbidden(at, "the stack does not create or change anything %s; remove it, and write only %s", what, And(allowed))
		}
	}
}

// JSONName returns the name of a field in JSON, or "" for an embedded struct without one.
func JSONName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Once reports each value that repeats an earlier one.
func Once[T comparable](p *Problems, path *field.Path, values []T, remedy string) {
	Unique(values, func(value T) T { return value }, func(i, _ int, value T) { p.Duplicate(path.Index(i), value, "%s", remedy) })
}

// UniqueField reports the field of each element of a list whose value repeats. The message
// contains the index of the first element with that value.
func UniqueField[E any](p *Problems, list *field.Path, name string, elements []E, value func(E) string, message string) {
	Unique(elements, value, func(i, first int, value string) {
		p.Duplicate(list.Index(i).Child(name), value, message, first)
	})
}

// Unique calls report for each element whose key repeats, with its index, the index of the
// first element with that key, and the key. It skips zero keys, because other rules report
// missing values.
func Unique[E any, K comparable](list []E, key func(E) K, report func(i, first int, key K)) {
	var missing K
	seen := map[K]int{}
	for i, element := range list {
		k := key(element)
		first, ok := seen[k]
		switch {
		case k == missing:
		case ok:
			report(i, first, k)
		default:
			seen[k] = i
		}
	}
}

// QuantityForm is a regular expression for quantities. It excludes decimal exponents, because
// comparing 1e99999999 takes a minute.
const QuantityForm = `^[+-]?[0-9.]{1,20}([numkMGTPE]|[KMGTPE]i)?$`

var quantityForm = regexp.MustCompile(QuantityForm)

// ParseQuantity parses a quantity in Kubernetes' notation.
func ParseQuantity(text string) (resource.Quantity, error) {
	if quantityForm.MatchString(text) {
		if q, err := resource.ParseQuantity(text); err == nil {
			return q, nil
		}
	}
	return resource.Quantity{}, errors.New("must be a quantity like 80, 500m or 600Gi, without spaces")
}

// Nearest returns at most four candidates at the smallest edit distance from a misspelt word,
// in their order. It returns none if they differ in more than a third of the word.
func Nearest(word string, candidates []string) []string {
	least := max(2, len(word)/3)
	var near []string
	for _, c := range candidates {
		switch d := levenshtein.Distance(strings.ToLower(word), strings.ToLower(c), nil); {
		case d < least:
			least, near = d, []string{c}
		case d == least:
			near = append(near, c)
		}
	}
	return near[:min(4, len(near))]
}

// Words returns the word of each element, for example for [Or].
func Words[E any](list []E, word func(E) string) []string {
	words := make([]string, len(list))
	for i, element := range list {
		words[i] = word(element)
	}
	return words
}

// Or joins words as "a, b or c".
func Or(words []string) string { return enumerate(words, " or ") }

// And joins words as "a, b and c".
func And(words []string) string { return enumerate(words, " and ") }

func enumerate(words []string, conjunction string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + conjunction + words[last]
}
