package input

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/gcp"
)

// OneOf reports a value that is not allowed, and returns whether it is. Fields with the tag enum need no such call.
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

// Listed returns the values that a tag lists: one of [gcp.Components], by its name, or the texts between commas.
func Listed(tag string) []string {
	if components := gcp.Components[tag]; components != nil {
		return components
	}
	return strings.Split(tag, ",")
}

// JSONName returns the name of a field in JSON, or "" for an embedded struct without one.
func JSONName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Unique reports each value of a list that repeats an earlier one. Name is the field of the elements that has
// the value, or "".
func Unique(p *Problems, list *field.Path, name string, values []string) {
	seen := map[string]int{}
	for i, value := range values {
		first, again := seen[value]
		switch {
		case value == "": // other rules report it
		case !again:
			seen[value] = i
		case name == "":
			p.Duplicate(list.Index(i), value, "is already at %s; remove it", p.PathOf(list.Index(first)))
		default:
			p.Duplicate(list.Index(i).Child(name), value, "is already used by %s; write another %s", p.PathOf(list.Index(first)), name)
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

// Count returns a number and the noun that it counts.
func Count(number int, of string) string {
	if number == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", number, of)
}

// And joins words as "a, b and c".
func And(words []string) string { return enumerate(words, " and ") }

func enumerate(words []string, conjunction string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + conjunction + words[last]
}
