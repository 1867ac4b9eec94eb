package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validator collects everything that is wrong with a stack whose defaults are
// set. Each rule says what is allowed and what to do.
type validator struct {
	stack   *Stack
	written writtenPaths
	// undecoded are the problems of decoding: what is wrong already is not
	// reported a second time for being empty.
	undecoded field.ErrorList
	problems  field.ErrorList
}

func (v *validator) validate() {
	v.project()
	v.cluster()
	v.network()
	v.machineTypes()
	v.nodePools()
	v.nvidiaDriver()
	v.volumes()
	v.nats()
	v.jobs()
	v.serviceNames()
	if v.stack.PEDL != nil {
		v.pedl()
	}
	if len(v.undecoded)+len(v.problems) == 0 {
		v.capacity()
	}
}

func (v *validator) invalid(path *field.Path, value any, format string, args ...any) {
	v.add(field.Invalid(path, value, fmt.Sprintf(format, args...)))
}

func (v *validator) required(path *field.Path, format string, args ...any) {
	v.add(field.Required(path, fmt.Sprintf(format, args...)))
}

func (v *validator) forbidden(path *field.Path, format string, args ...any) {
	v.add(field.Forbidden(path, fmt.Sprintf(format, args...)))
}

func (v *validator) duplicate(path *field.Path, value any, format string, args ...any) {
	err := field.Duplicate(path, value)
	err.Detail = fmt.Sprintf(format, args...)
	v.add(err)
}

func (v *validator) add(err *field.Error) {
	err.Field = v.written.of(err.Field)
	for _, u := range v.undecoded {
		if within(err.Field, u.Field) {
			return
		}
	}
	v.problems = append(v.problems, err)
}

// decoded reports whether everything below a key could be decoded. What refers
// to a part that could not is checked once that is mended.
func (v *validator) decoded(key string) bool {
	return !slices.ContainsFunc(v.undecoded, func(err *field.Error) bool {
		return within(err.Field, key)
	})
}

// within reports whether a path is another one or lies below it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// oneOf refuses a value that is not among those allowed.
func oneOf[T ~string](v *validator, path *field.Path, value T, allowed ...T) bool {
	switch {
	case slices.Contains(allowed, value):
		return true
	case value == "":
		v.required(path, "write %s", or(texts(allowed)))
	default:
		v.invalid(path, value, "must be %s", or(texts(allowed)))
	}
	return false
}

func texts[T ~string](values []T) []string {
	s := make([]string, len(values))
	for i, value := range values {
		s[i] = string(value)
	}
	return s
}

// name refuses a name that one of apimachinery's checks refuses.
func (v *validator) name(path *field.Path, value string, check func(string) []string) {
	if value == "" {
		v.required(path, "write a name")
		return
	}
	for _, message := range check(value) {
		v.invalid(path, value, "%s", message)
	}
}

// atMost refuses a name that is too long, or makes others too long.
func (v *validator) atMost(longest int, path *field.Path, value, why string) {
	if len(value) > longest {
		v.invalid(path, value, "has %d characters and must have at most %d, %s; choose a shorter name", len(value), longest, why)
	}
}

// unique calls report with each value that was there before, and where. Values
// that are missing are reported for that already.
func unique[T comparable](values []T, report func(i, first int)) {
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
