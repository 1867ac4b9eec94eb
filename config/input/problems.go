package input

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Problems collects the problems of a stack. The zero value is ready to use.
//
// Rules report the path at which the program has a value. Problems print where the user wrote it, for
// example in a manifest.
type Problems struct {
	// Absent says what to write instead of fields that people look for and no object has, by their
	// paths with [] for an index.
	Absent map[string]string

	found     field.ErrorList
	undecoded []string // paths, as written, of values that could not be decoded
	typos     []string // paths, as written, of objects with a misspelt field
	warnings  []string
	first     []string
	written   map[string]string
	given     map[string]bool
	remedies  []remedy
}

// Invalid reports a value that is not allowed, and returns the problem.
func (p *Problems) Invalid(path *field.Path, value any, format string, args ...any) *field.Error {
	return p.add(field.Invalid(path, value, fmt.Sprintf(format, args...)))
}

// Required reports a value that is missing, and returns the problem.
func (p *Problems) Required(path *field.Path, format string, args ...any) *field.Error {
	return p.add(field.Required(path, fmt.Sprintf(format, args...)))
}

// Forbidden reports something that must not be written at all.
func (p *Problems) Forbidden(path *field.Path, format string, args ...any) {
	p.add(field.Forbidden(path, fmt.Sprintf(format, args...)))
}

// Duplicate reports a value that repeats another one.
func (p *Problems) Duplicate(path *field.Path, value any, format string, args ...any) {
	err := field.Duplicate(path, value)
	err.Detail = fmt.Sprintf(format, args...)
	p.add(err)
}

// Undecodable reports a value of the wrong type or form. It suppresses later problems at and
// below the path, which would report the value again for being empty.
func (p *Problems) Undecodable(path *field.Path, value any, format string, args ...any) {
	p.undecodable(field.TypeInvalid(path, value, fmt.Sprintf(format, args...)))
}

// Unreadable is [Problems.Undecodable] for what must not be written at all. It does not show the value.
func (p *Problems) Unreadable(path *field.Path, format string, args ...any) {
	p.undecodable(field.Forbidden(path, fmt.Sprintf(format, args...)))
}

// unreadable is [Problems.Unreadable] for each value in an object, or for a value that is no object.
func (p *Problems) unreadable(path *field.Path, value any, why string) {
	object, ok := value.(map[string]any)
	if !ok {
		p.Unreadable(path, "%s", why)
	}
	for name, inner := range object {
		p.unreadable(path.Child(name), inner, why)
	}
}

// Missing is [Problems.Required] for an object or a list. It suppresses later problems below the path.
func (p *Problems) Missing(path *field.Path, format string, args ...any) {
	p.undecodable(field.Required(path, fmt.Sprintf(format, args...)))
}

// Warn adds a warning about something valid that the user may not have meant. It adds each text once.
func (p *Problems) Warn(path *field.Path, format string, args ...any) {
	p.warn(&p.warnings, path, format, args)
}

// WarnFirst is [Problems.Warn] for what matters only until the first `pulumi up` has succeeded.
func (p *Problems) WarnFirst(path *field.Path, format string, args ...any) {
	p.warn(&p.first, path, format, args)
}

func (p *Problems) warn(list *[]string, path *field.Path, format string, args []any) {
	if text := p.PathOf(path) + ": " + fmt.Sprintf(format, args...); !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

// Warnings returns the warnings, as PATH: TEXT.
func (p *Problems) Warnings() []string { return p.warnings }

// FirstWarnings returns the warnings of [Problems.WarnFirst].
func (p *Problems) FirstWarnings() []string { return p.first }

// misspelt records an object with a misspelt field, and the fields that the user may have meant. It suppresses the
// problems of these, and of required fields of the object.
func (p *Problems) misspelt(object *field.Path, meant []string) {
	p.typos = append(p.typos, p.PathOf(object))
	for _, name := range meant {
		p.undecoded = append(p.undecoded, p.PathOf(object.Child(name)))
	}
}

func (p *Problems) undecodable(err *field.Error) {
	err.Field = p.pathOf(err.Field)
	p.found = append(p.found, err)
	p.undecoded = append(p.undecoded, err.Field)
}

// InvalidFor reports a value with each message of a check of apimachinery.
func (p *Problems) InvalidFor(path *field.Path, value any, messages []string) {
	for _, message := range messages {
		if why, better, has := strings.Cut(message, "; write "); has && !strings.Contains(better, " ") {
			p.Instead(path, value, better, "%s", why)
		} else {
			p.Invalid(path, value, "%s", message)
		}
	}
}

// AtMost reports a name that is too long, or that makes derived names too long. Why
// completes the sentence "must have at most 40, …".
func (p *Problems) AtMost(longest int, path *field.Path, value, why string) {
	if len(value) > longest {
		p.Invalid(path, value, "has %d characters and must have at most %d, %s; choose a shorter name", len(value), longest, why)
	}
}

func (p *Problems) add(err *field.Error) *field.Error {
	err.Field = p.pathOf(err.Field)
	for _, outer := range p.undecoded {
		if within(err.Field, outer) {
			return err
		}
	}
	for i, found := range p.found {
		if err.Type == field.ErrorTypeRequired && found.Type == err.Type && found.Field == err.Field {
			p.found[i] = err // the decoder's remedy is the same for all fields
			return err
		}
	}
	for _, object := range p.typos {
		name, inside := strings.CutPrefix(err.Field, object+".")
		if inside && err.Type == field.ErrorTypeRequired && !strings.ContainsAny(name, ".[") {
			return err
		}
	}
	p.found = append(p.found, err)
	return err
}

// move records that the user wrote the value at a path at another one. It also applies below the path, except where
// a longer path has been moved.
func (p *Problems) move(path, written string) {
	if p.written == nil {
		p.written = map[string]string{}
	}
	p.written[path] = written
}

// PathOf returns where the user wrote the value that the program has at a path.
func (p *Problems) PathOf(path *field.Path) string { return p.pathOf(path.String()) }

func (p *Problems) pathOf(path string) string {
	for outer := path; outer != ""; outer = outer[:max(0, strings.LastIndexAny(outer, ".["))] {
		if written, ok := p.written[outer]; ok {
			return written + path[len(outer):]
		}
	}
	return path
}

// Give records that the user wrote a value at a path. [Decode] calls it.
func (p *Problems) Give(path *field.Path) {
	if p.given == nil {
		p.given = map[string]bool{}
	}
	p.given[path.String()] = true
}

// Given reports whether the user wrote a value at a path, even one that equals its default.
func (p *Problems) Given(path *field.Path) bool { return p.given[path.String()] }

// Decoded reports whether everything at and below a path could be decoded. Rules skip values
// that depend on a part that could not, until the user has fixed that part.
func (p *Problems) Decoded(path *field.Path) bool {
	return !slices.ContainsFunc(p.undecoded, func(undecoded string) bool {
		return within(undecoded, p.pathOf(path.String()))
	})
}

// Count returns the number of problems so far.
func (p *Problems) Count() int { return len(p.found) }

// None reports whether there are no problems so far.
func (p *Problems) None() bool { return len(p.found) == 0 }

// Err returns all problems as one error, one per line and sorted by path, or nil if there are none.
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
	lines = slices.Compact(lines)
	noun := "problems"
	if len(lines) == 1 {
		noun = "problem"
	}
	return fmt.Errorf("stack configuration: %d %s\n%s", len(lines), noun, strings.Join(lines, "\n"))
}

// line prints a problem. It drops the word Forbidden, because the detail makes that clear.
func line(err *field.Error) string {
	if err.Type == field.ErrorTypeForbidden {
		return err.Field + ": " + err.Detail
	}
	return err.Error()
}

// within reports whether a path equals another one or is below it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

var index = regexp.MustCompile(`\[\d+\]`)

// sortable pads the indexes of a path, so that elements of a list sort by number.
func sortable(path string) string {
	return index.ReplaceAllStringFunc(path, func(i string) string {
		return "[" + strings.Repeat("0", max(0, 8-len(i))) + i[1:]
	})
}
