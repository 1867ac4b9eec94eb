package rehearsal

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Summary is what a rehearsal has found.
type Summary struct {
	stack, base, plan string
	began             time.Time
	// took are the steps, and ended is what has lost pods, nodes, or itself. found is what outlives a destroy, and placeholders
	// are the paths of encrypted values.
	took, ended, found, placeholders []string
	// attempts are the jobs that have lost pods. kept is how many workloads, pools, and claims have lost nothing.
	attempts []string
	kept     int
	problems []string
	// baseRefusals keep the base from coming up. The change then comes up from nothing.
	refusals, baseRefusals refusals
}

// OK reports whether everything was accepted, and has happened as announced.
func (s Summary) OK() bool { return len(s.problems)+len(s.refusals) == 0 }

func (s *Summary) problem(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// Refusal is what somebody does not accept: Who, Where in the stack file or which object, and what it Says.
type Refusal struct{ Who, Where, Says string }

// refusals are the error of a step that somebody refuses.
type refusals []Refusal

func (r refusals) Error() string { return fmt.Sprint([]Refusal(r)) }

var (
	// pathSays is what the program says at a path of the stack file.
	pathSays = regexp.MustCompile(`(?m)(persia:[^ \n]+): (.+)$`)
	// ends is what the engine says when it ends because of an error that it has said before.
	ends   = regexp.MustCompile(`^(update|preview) (failed|canceled)$`)
	policy = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)'|admission webhook "([^"]+)"`)
)

// refusalsOf returns who refuses what in a message about a resource, or in a step.
func refusalsOf(urn, step, message string) (all refusals) {
	of := resource.URN(urn)
	kind, by := "", policy.FindStringSubmatch(message)
	if urn != "" {
		kind, step = string(of.Type()), fmt.Sprintf("%s %s", of.Type(), of.Name())
	}
	switch {
	case by != nil:
		return refusals{{"the policy " + by[1] + by[2], step, message}}
	case strings.HasPrefix(kind, "gcp:"):
		return refusals{{"Google", step, message}}
	case strings.HasPrefix(kind, "kubernetes:"):
		return refusals{{"Kubernetes", step, message}}
	}
	for _, match := range pathSays.FindAllStringSubmatch(message, -1) {
		all = append(all, Refusal{"the program", match[1], match[2]})
	}
	if message = strings.TrimSpace(message); all == nil && !ends.MatchString(message) {
		all = refusals{{"the program", step, message}}
	}
	return all
}

// String returns the summary in at most 25 lines.
func (s Summary) String() string {
	lines := []string{fmt.Sprintf("%s: the stack %s, from %s, in %s", s.verdict(), s.stack, s.base, time.Since(s.began).Round(time.Second))}
	add := func(title string, all []string) {
		if len(all) > 0 {
			lines = append(lines, title+":\n  "+strings.Join(all, "\n  "))
		}
	}
	for _, refused := range s.refusals {
		said := strings.Split(strings.TrimSpace(refused.Says), "\n")
		add(refused.Who+" refuses "+refused.Where, said[:min(len(said), 4)])
	}
	for _, refused := range s.baseRefusals {
		add("before this change, "+refused.Who+" refuses "+refused.Where, strings.Split(strings.TrimSpace(refused.Says), "\n")[:1])
	}
	add("not as announced", s.problems)
	add("ended", s.ended)
	if len(s.attempts) > 0 {
		lines = append(lines, "jobs whose attempt ended: "+strings.Join(s.attempts, ", "))
	}
	add("kept by destroy", s.found)
	add("placeholders instead of encrypted values", s.placeholders)
	if s.plan != "" {
		lines = append(lines, fmt.Sprintf("kept: %d workloads, pools, and claims", s.kept), "planned: "+s.plan)
	}
	lines = append(lines, "took: "+strings.Join(s.took, ", "),
		"not judged: machines, quotas, and stock, which `bin/persia preflight` asks Google for")
	lines = strings.Split(strings.Join(lines, "\n"), "\n")
	if more := len(lines) - 25; more > 0 {
		lines = append(lines[:24], fmt.Sprintf("… and %d lines more", more+1))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (s Summary) verdict() string {
	switch {
	case len(s.refusals) > 0:
		return "REFUSED"
	case len(s.problems) > 0:
		return "NOT AS ANNOUNCED"
	}
	return "as announced"
}

// Markdown returns the summary for a comment on a pull request.
func (s Summary) Markdown() string {
	return fmt.Sprintf("<!-- persia-rehearsal: %s -->\n## Rehearsal of stack %[1]s: %s\n\n```text\n%s```\n", s.stack, s.verdict(),
		strings.ReplaceAll(s.String(), "```", "'''"))
}
