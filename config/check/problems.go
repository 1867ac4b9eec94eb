// Package check collects what is wrong with a stack file. Each problem names the
// path that the user wrote, the value found there and what to write instead.
package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Problems collects everything that is wrong with a stack. The zero value is
// ready to use.
//
// Rules report the path that a value has for the program. Where the user wrote it
// elsewhere or by another name, [Problems.Written] says so, and the problem is
// reported there.
type Problems struct {
	found field.ErrorList
	// undecoded are the paths, as written, of values that could not be decoded.
	undecoded []string
	written   map[string]string
	given     map[string]bool
}

// Invalid reports a value that is not allowed.
func (p *Problems) Invalid(path *field.Path, value any, format string, args ...any) {
	p.add(field.Invalid(path, value, fmt.Sprintf(format, args...)))
}

// Required reports a value that is missing.
func (p *Problems) Required(path *field.Path, format string, args ...any) {
	p.add(field.Required(path, fmt.Sprintf(format, args...)))
}

// Forbidden reports something that must not be written at all.
func (p *Problems) Forbidden(path *field.Path, format string, args ...any) {
	p.add(field.Forbidden(path, fmt.Sprintf(format, args...)))
}

// Duplicate reports a value that another one has taken.
func (p *Problems) Duplicate(path *field.Path, value any, format string, args ...any) {
	err := field.Duplicate(path, value)
	err.Detail = fmt.Sprintf(format, args...)
	p.add(err)
}

// Undecodable reports a value of the wrong type or form. Problems that are reported
// later for the same path, or below it, are dropped: they would report the same
// value a second time for being empty.
func (p *Problems) Undecodable(path *field.Path, value any, format string, args ...any) {
	p.undecodable(field.TypeInvalid(path, value, fmt.Sprintf(format, args...)))
}

// Unreadable is [Problems.Undecodable] for what must not be written at all: its
// value is not shown.
func (p *Problems) Unreadable(path *field.Path, format string, args ...any) {
	p.undecodable(field.Forbidden(path, fmt.Sprintf(format, args...)))
}

// Missing is [Problems.Required] for a value that everything below it stands in:
// problems that are reported later below it are dropped.
func (p *Problems) Missing(path *field.Path, format string, args ...any) {
	p.undecodable(field.Required(path, fmt.Sprintf(format, args...)))
}

func (p *Problems) undecodable(err *field.Error) {
	err.Field = p.pathOf(err.Field)
	p.found = append(p.found, err)
	p.undecoded = append(p.undecoded, err.Field)
}

// Name reports a name that one of apimachinery's checks refuses.
func (p *Problems) Name(path *field.Path, value string, check func(string) []string) {
	if value == "" {
		p.Required(path, "write a name")
		return
	}
	for _, message := range check(value) {
		p.Invalid(path, value, "%s", message)
	}
}

// AtMost reports a name that is too long, or makes others too long. The reason
// completes the sentence "must have at most 40, …".
func (p *Problems) AtMost(longest int, path *field.Path, value, why string) {
	if len(value) > longest {
		p.Invalid(path, value, "has %d characters and must have at most %d, %s; choose a shorter name", len(value), longest, why)
	}
}

func (p *Problems) add(err *field.Error) {
	err.Field = p.pathOf(err.Field)
	for _, outer := range p.undecoded {
		if within(err.Field, outer) {
			return
		}
	}
	p.found = append(p.found, err)
}

// Written says where the user wrote values that the program has at other paths:
// the written path of each such path. What lies below it was written there too,
// unless it has an entry of its own.
func (p *Problems) Written(paths map[string]string) { p.written = paths }

// PathOf is the path at which the user wrote what the program has at a path.
func (p *Problems) PathOf(path *field.Path) string { return p.pathOf(path.String()) }

func (p *Problems) pathOf(path string) string {
	for outer := path; outer != ""; outer = outer[:max(0, strings.LastIndexAny(outer, ".["))] {
		if written, ok := p.written[outer]; ok {
			return written + path[len(outer):]
		}
	}
	return path
}

// Give notes that the user has written a value at a path. Decoding does it.
func (p *Problems) Give(path *field.Path) {
	if p.given == nil {
		p.given = map[string]bool{}
	}
	p.given[path.String()] = true
}

// Given reports whether the user has written a value at a path, which a value that
// equals its default does not tell.
func (p *Problems) Given(path *field.Path) bool { return p.given[path.String()] }

// Decoded reports whether everything at a path and below it could be decoded. What
// refers to a part that could not is checked once that part is mended.
func (p *Problems) Decoded(path *field.Path) bool {
	return !slices.ContainsFunc(p.undecoded, func(undecoded string) bool {
		return within(undecoded, p.pathOf(path.String()))
	})
}

// Count is the number of problems so far.
func (p *Problems) Count() int { return len(p.found) }

// None reports whether nothing is wrong so far.
func (p *Problems) None() bool { return len(p.found) == 0 }

// Err lists all problems, one a line and sorted by path. It is nil if there are
// none.
func (p *Problems) Err() error {
	if p.None() {
		return nil
	}
	sorted := slices.Clone(p.found)
	slices.SortStableFunc(sorted, func(a, b *field.Error) int {
		return strings.Compare(sortable(a.Field), sortable(b.Field))
	})
	lines := make([]string, len(sorted))
	for i, err := range sorted {
		lines[i] = line(err)
	}
	return problemList(slices.Compact(lines))
}

type problemList []string

func (p problemList) Error() string {
	noun := "problems"
	if len(p) == 1 {
		noun = "problem"
	}
	return fmt.Sprintf("stack configuration: %d %s\n%s", len(p), noun, strings.Join(p, "\n"))
}

// line is a problem as it is printed. That something is forbidden is clear from
// its text.
func line(err *field.Error) string {
	if err.Type == field.ErrorTypeForbidden {
		return err.Field + ": " + err.Detail
	}
	return err.Error()
}

// within reports whether a path is another one or lies below it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

var index = regexp.MustCompile(`\[\d+\]`)

// sortable is a path that sorts the elements of a list by their index.
func sortable(path string) string {
	return index.ReplaceAllStringFunc(path, func(i string) string {
		return "[" + strings.Repeat("0", max(0, 8-len(i))) + i[1:]
	})
}
