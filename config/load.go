package config

import (
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// key is a key of the stack file: where its value goes, and what to write if it
// is missing. They are required, since a misspelt key cannot be told from a key
// of another program. Without such a text the validation decides.
type key struct {
	name    string
	into    func(*Stack) any
	missing string
}

var keys = []key{
	{projectKey, func(s *Stack) any { return &s.Project }, ""},
	{clusterKey, func(s *Stack) any { return &s.Cluster },
		"write an object with name, region and zones"},
	{machineTypesKey, func(s *Stack) any { return &s.MachineTypes },
		"write an object of machine types with their hourlyPrice, or {} for none"},
	{nodePoolsKey, func(s *Stack) any { return &s.NodePools },
		"write the list of node pools, or [] for none"},
	{nvidiaDriverKey, func(s *Stack) any { return &s.NVIDIADriver },
		"write an object with installer: managed, ubuntu-daemonset or cos-daemonset"},
	{volumesKey, func(s *Stack) any { return &s.Volumes },
		"write the list of volumes, or [] for none"},
	{natsKey, func(s *Stack) any { return &s.NATS },
		"write an object with size and resources, or {} where a manifest has them"},
	{jobsKey, func(s *Stack) any { return &s.Jobs },
		"write the list of jobs, or [] for none"},
	{pedlKey, func(s *Stack) any { return &s.PEDL }, ""},
}

const (
	projectKey      = "persia:project"
	clusterKey      = "persia:cluster"
	machineTypesKey = "persia:machineTypes"
	nodePoolsKey    = "persia:nodePools"
	nvidiaDriverKey = "persia:nvidiaDriver"
	volumesKey      = "persia:volumes"
	natsKey         = "persia:nats"
	jobsKey         = "persia:jobs"
	pedlKey         = "persia:pedl"
)

// Keys are the keys of a stack file that [Load] reads, each with its namespace.
func Keys() []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

// RequiredKeys are those of [Keys] that every stack file has.
func RequiredKeys() []string {
	var names []string
	for _, k := range keys {
		if k.missing != "" {
			names = append(names, k.name)
		}
	}
	return names
}

// StackField is the field of [Stack] that the value of a key is decoded to.
func StackField(key string) (reflect.StructField, bool) {
	s := &Stack{}
	stack := reflect.ValueOf(s).Elem()
	for _, k := range keys {
		for i := range stack.NumField() {
			if k.name == key && k.into(s) == stack.Field(i).Addr().Interface() {
				return stack.Type().Field(i), true
			}
		}
	}
	return reflect.StructField{}, false
}

// Load reads a stack, completes it with defaults and validates it. It gets the
// value of each key as Pulumi hands it out: a string as it is, anything else as
// JSON. The manifests that jobs name are among files, those of the project's
// directory. The error lists every problem of the stack, one a line.
func Load(get func(key string) (string, bool), files fs.FS) (*Stack, error) {
	s, d := &Stack{}, &decoder{written: writtenPaths{}}
	// A manifest may hold what the stack file leaves open.
	var found manifests
	if text, ok := given(get, jobsKey); ok {
		found = d.readManifests(field.NewPath(jobsKey), text, files)
	}
	for _, k := range keys {
		path := field.NewPath(k.name)
		text, ok := given(get, k.name)
		switch {
		case !ok && k.missing != "":
			d.problems = append(d.problems, field.Required(path, k.missing))
		case !ok:
		case k.name == jobsKey:
			s.Jobs = d.decodeJobs(found.jobs)
		case k.name == natsKey && found.nats != nil:
			d.decodeNATS(path, found.nats, &s.NATS)
			d.written.overwritten(path, text)
			d.decodeText(path, text, &s.NATS)
		default:
			d.decodeText(path, text, k.into(s))
		}
	}
	d.settle()
	s.dropEmptyPEDL()
	s.setDefaults()
	v := &validator{stack: s, written: d.written, undecoded: d.problems}
	v.validate()
	if found := append(d.problems, v.problems...); len(found) > 0 {
		return nil, newProblems(found)
	}
	return s, nil
}

// given is the value of a key, if there is one.
func given(get func(key string) (string, bool), key string) (string, bool) {
	text, ok := get(key)
	return text, ok && text != "" && text != "null"
}

// problems is everything that is wrong with a stack, sorted by path.
type problems []string

func newProblems(found field.ErrorList) problems {
	slices.SortStableFunc(found, func(a, b *field.Error) int {
		return strings.Compare(sortable(a.Field), sortable(b.Field))
	})
	lines := make([]string, len(found))
	for i, err := range found {
		lines[i] = line(err)
	}
	return slices.Compact(lines)
}

func (p problems) Error() string {
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

var index = regexp.MustCompile(`\[\d+\]`)

// sortable is a path that sorts the elements of a list by their index.
func sortable(path string) string {
	return index.ReplaceAllStringFunc(path, func(i string) string {
		return "[" + strings.Repeat("0", max(0, 8-len(i))) + i[1:]
	})
}
