package comment

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// preview is the output of `pulumi preview --diff`, in parts.
type preview struct {
	// needs are the tables of capacity, quotas and cost.
	needs string
	// errors and warnings are of the program and of the engine.
	errors, warnings []string
	// effects is the program's text about the effects of the update on what runs.
	effects string
	// changes are the resources that will not stay as they are.
	changes []change
	// counts are the changes by operation, like "3 to create".
	counts []string
	// diff lists the changes of each resource.
	diff string
	// output is everything, as it came.
	output string
}

// change is the planned operation on one resource.
type change struct {
	operation, typ, name string
}

// removes reports whether something is taken away, be it that another takes its
// place.
func (c change) removes() bool {
	return slices.Contains([]string{"delete", "replace", "delete-replaced", "discard", "discard-replaced"}, c.operation)
}

func (c change) String() string { return fmt.Sprintf("%-8s %s  %s", c.operation, c.typ, c.name) }

// needsTitle is the line that the program logs before its tables.
const needsTitle = "What the stack needs:"

// effectsTitle is the first line of the program's warning about what an update does.
const effectsTitle = "What this update does to what runs:"

var (
	// resourceLine begins a resource of the diff: "    +-kubernetes:core/v1:Service: (replace)".
	resourceLine = regexp.MustCompile(`^ *(?:[-+~<>=*|]{1,2})? *([^ ]+:[^ ]*:[^ ]+): \(([a-z-]+)\)`)
	urnLine      = regexp.MustCompile(`^( +)\[urn=urn:pulumi:.*::(.+)\]$`)
	// providerLine names the provider by an identifier, which says nothing to people.
	providerLine = regexp.MustCompile(`^ +\[provider=.*\]$`)
	countLine    = regexp.MustCompile(`^    \S* *(\d+ to .+)$`)
)

const (
	outputsLine   = "    --outputs:--"
	resourcesLine = "Resources:"
)

// unchanged are the operations that change nothing. A refresh reports every new status as an
// update; the program's reaction to it is an operation of its own.
var unchanged = []string{"same", "read", "refresh"}

// ignore skips lines that a reviewer does not need.
func ignore(string) {}

// parse takes the output apart. The engine writes each message and each resource
// in one piece, and messages start at the left margin.
func parse(output string) preview {
	p := preview{output: output}
	var diff strings.Builder
	inDiff := func(line string) {
		// A line without indentation belongs to no resource: Pulumi installs a plugin.
		if line == "" || strings.HasPrefix(line, " ") || resourceLine.MatchString(line) {
			diff.WriteString(line + "\n")
		}
	}
	// more takes the next line of the part that is being read.
	more := ignore
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		resource := resourceLine.FindStringSubmatch(line)
		switch {
		case line == needsTitle:
			more = func(line string) { p.needs += line + "\n" }
		case strings.HasPrefix(line, "error: "):
			more = last(&p.errors, strings.TrimPrefix(line, "error: "))
		case strings.HasPrefix(line, "warning: "):
			more = last(&p.warnings, strings.TrimPrefix(line, "warning: "))
		case line == resourcesLine:
			more = func(line string) {
				if count := countLine.FindStringSubmatch(line); count != nil {
					p.counts = append(p.counts, count[1])
				}
			}
		case resource != nil:
			if slices.Contains(unchanged, resource[2]) {
				more = ignore
				continue
			}
			p.changes = append(p.changes, change{operation: resource[2], typ: resource[1]})
			more = inDiff
			more(line)
		case line == outputsLine:
			more = inDiff
			more(line)
		case providerLine.MatchString(line):
		default:
			if urn := urnLine.FindStringSubmatch(line); urn != nil {
				p.name(urn[2])
				// The types of the parents make the line longer than GitHub shows.
				line = urn[1] + "[" + urn[2] + "]"
			}
			more(line)
		}
	}
	p.needs = strings.Trim(p.needs, "\n")
	p.diff = strings.Trim(diff.String(), "\n")
	for _, messages := range [][]string{p.errors, p.warnings} {
		for i := range messages {
			messages[i] = strings.TrimSpace(messages[i])
		}
	}
	p.warnings = slices.DeleteFunc(p.warnings, func(warning string) bool {
		text, ok := strings.CutPrefix(warning, effectsTitle)
		if ok {
			p.effects = strings.TrimSpace(text)
		}
		return ok
	})
	return p
}

// last appends a message, and returns a function that appends further lines to it.
func last(messages *[]string, message string) func(string) {
	*messages = append(*messages, message)
	i := len(*messages) - 1
	return func(line string) { (*messages)[i] += "\n" + line }
}

// name gives the last resource its name, which Pulumi prints on a separate line.
func (p *preview) name(name string) {
	if last := len(p.changes) - 1; last >= 0 && p.changes[last].name == "" {
		p.changes[last].name = name
	}
}

// fingerprint returns the same for two previews that would do the same, in whatever
// order the engine came to each resource, and "none" where nothing changes.
func (p preview) fingerprint() string {
	if p.diff == "" {
		return "none"
	}
	var blocks []string
	for line := range strings.Lines(p.diff + "\n") {
		if line == outputsLine+"\n" || len(blocks) == 0 || resourceLine.MatchString(line) {
			blocks = append(blocks, "")
		}
		blocks[len(blocks)-1] += line
	}
	slices.Sort(blocks)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(blocks, ""))))[:16]
}
