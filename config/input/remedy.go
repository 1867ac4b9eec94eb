package input

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Edits are new values by their paths in the tree. Nil removes a value.
type Edits = map[*field.Path]any

// remedy is an edit that may solve a problem, and how a message says it. Without one, it says what is allowed.
type remedy struct {
	problem *field.Error
	say     string
	edits   Edits
	last    bool
}

// Try has a problem say what to write, if that solves it, and with last only if nothing before does.
func (p *Problems) Try(problem *field.Error, last bool, edits Edits, format string, args ...any) {
	p.remedies = append(p.remedies, remedy{problem, fmt.Sprintf(format, args...), edits, last})
}

// Instead is [Problems.Invalid] for a value in whose place another one may be written.
func (p *Problems) Instead(path *field.Path, value, better any, format string, args ...any) {
	p.Try(p.Invalid(path, value, format, args...), false, Edits{path: better}, "write %v", better)
}

// Choose has a problem say which values solve it or, if none does, which there are.
func (p *Problems) Choose(problem *field.Error, path *field.Path, values []string) {
	for _, value := range values {
		p.Try(problem, false, Edits{path: value}, "write %q", value)
	}
	p.Try(problem, true, nil, "there are %s", And(values))
}

// Advise adds to the problems what solves them: after its edits, there are fewer problems.
func (p *Problems) Advise(after func(Edits) *Problems) {
	advised := map[*field.Error]bool{}
	for _, r := range p.remedies {
		if r.last && advised[r.problem] || r.edits != nil && after(r.edits).Count() >= p.Count() {
			continue
		}
		r.problem.Detail += map[bool]string{true: ", or ", false: "; "}[strings.Contains(r.problem.Detail, "; ")] + r.say
		advised[r.problem] = true
	}
}

// pathElement is a name, an index, or a key in a path.
var pathElement = regexp.MustCompile(`\[[^]]+\]|[^.\[\]]+`)

// Set sets the value at a path, as errors print it. Nil removes a value, and a path one behind the end of a list adds one.
func (v Values) Set(path string, value any) {
	edit(map[string]any(v), pathElement.FindAllString(path, -1), value, true)
}

// edit returns a value after an edit, which adds what is not there only if it may.
func edit(in any, path []string, value any, add bool) any {
	if len(path) == 0 {
		return value
	}
	if in == nil && add {
		in = map[string]any{}
	}
	name := strings.Trim(path[0], "[]")
	switch in := in.(type) {
	case []any:
		i, _ := strconv.Atoi(name)
		if i == len(in) && add {
			in = append(in, nil)
		}
		if i >= len(in) {
			return in
		}
		if in[i] = edit(in[i], path[1:], value, add); in[i] == nil {
			return slices.Delete(in, i, i+1)
		}
		return in
	case map[string]any:
		if in[name] != nil || add {
			in[name] = edit(in[name], path[1:], value, add)
		}
		if in[name] == nil {
			delete(in, name)
		}
	case Located:
		return Located{in.At, edit(in.Value, path, value, add)}
	case Layers:
		for i, layer := range in {
			in[i] = edit(layer, path, value, add && len(in) == 1)
		}
	}
	return in
}
