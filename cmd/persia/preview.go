package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"persia/config"
	"persia/config/input"
)

// event has the fields of an engine event that a comment needs (apitype.EngineEvent in Pulumi's SDK).
type event struct {
	Diagnostic *struct {
		Severity, Prefix, Message string
		Ephemeral                 bool
	} `json:"diagnosticEvent"`
	Before  *struct{ Metadata step } `json:"resourcePreEvent"`
	Outputs *struct{ Metadata step } `json:"resOutputsEvent"`
}

// step is a planned operation on a resource.
type step struct {
	Op, URN, Type string
	Old, New      side
	DetailedDiff  map[string]any
}

// side is a resource before or after a step.
type side struct {
	Inputs, Outputs map[string]any
	RetainOnDelete  bool
}

// preview has the parts of a preview.
type preview struct {
	// sum counts the nodes and GPUs that the stack needs, and cost is their cost. needs has the tables that differ from the
	// last update, and details has the others.
	sum, cost, needs, details string
	// errors and warnings are of the program and of the engine.
	errors, warnings []string
	// effects is the program's text about the effects of the update on what runs.
	effects string
	// changes are the resources that will not stay as they are, and outputs the stack's outputs.
	changes []step
	outputs step
	// messages are those of all events, and said is what the command printed besides events.
	messages, said string
}

// operations are the ones that change something, in the engine's order. A refresh reports every new status as an
// update; the program's reaction to it is an operation of its own.
var operations = []string{"create", "update", "delete", "replace", "import", "import-replacement", "discard",
	"discard-replaced", "remove-pending-replace"}

// read reads what a command has printed.
func read(text string) *preview {
	var p preview
	for line := range strings.Lines(text) {
		p.read(line)
	}
	return &p
}

func (p *preview) read(line string) {
	var e event
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil {
		p.said += line
		p.messages += line
		return
	}
	switch {
	case e.Diagnostic != nil && !e.Diagnostic.Ephemeral && e.Diagnostic.Severity != "debug":
		p.messages += e.Diagnostic.Prefix + e.Diagnostic.Message
		p.diagnostic(e.Diagnostic.Severity, strings.TrimSpace(e.Diagnostic.Message))
	case e.Before != nil && slices.Contains(operations, e.Before.Metadata.Op):
		p.changes = append(p.changes, e.Before.Metadata)
	case e.Outputs != nil && e.Outputs.Metadata.Type == "pulumi:pulumi:Stack":
		p.outputs = e.Outputs.Metadata
	}
}

// engineSays is how the engine begins what the program says of a stack file.
var engineSays = regexp.MustCompile(`^an unhandled error occurred: (1 error occurred:\n\t\* )?`)

func (p *preview) diagnostic(severity, message string) {
	if text, ok := strings.CutPrefix(message, config.NeedsTitle); ok {
		first, tables, _ := strings.Cut(strings.TrimSpace(text), "\n")
		p.sum, p.cost, _ = strings.Cut(first, "; ")
		p.needs = strings.Trim(tables, "\n")
	} else if text, ok := strings.CutPrefix(message, config.DetailsTitle); ok {
		p.details = strings.Trim(text, "\n")
	} else if text, ok := strings.CutPrefix(message, config.EffectsTitle); ok {
		p.effects = strings.TrimSpace(text)
	} else if severity == "error" {
		p.errors = append(p.errors, engineSays.ReplaceAllString(message, ""))
	} else if severity == "warning" {
		p.warnings = append(p.warnings, message)
	}
}

// removes reports whether something is taken away, be it that another takes its place.
func (s step) removes() bool {
	return slices.Contains([]string{"delete", "replace", "discard", "discard-replaced"}, s.Op)
}

func (s step) name() string { return s.URN[strings.LastIndex(s.URN, "::")+2:] }

// sign is how a line about the step begins. GitHub colors a line by it.
func (s step) sign() string {
	return cmp.Or(map[string]string{"create": "+", "import": "+", "delete": "-"}[s.Op], "!")
}

// kept marks what the engine forgets and the cloud keeps.
func (s step) kept() string {
	if s.removes() && s.Old.RetainOnDelete {
		return " [retain]"
	}
	return ""
}

// title is the step in one line.
func (s step) title() string {
	return fmt.Sprintf("%s %s  %s (%s)%s", s.sign(), s.Type, s.name(), s.Op, s.kept())
}

// bookkeeping reports whether the step is of what runs nothing: of Pulumi and of the program's groups, and the
// replacement of the Job that says whether a training is complete, which comes with each change of the training.
func (s step) bookkeeping() bool {
	metadata, _ := s.Old.Inputs["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	return strings.HasPrefix(s.Type, "pulumi:") || strings.HasPrefix(s.Type, config.Namespace+":") ||
		s.Op == "replace" && s.Type == "kubernetes:batch/v1:Job" && labels["app.kubernetes.io/name"] == config.Completion
}

// titles returns the changes, one a line. New Kubernetes objects are one line.
func (p *preview) titles() []string {
	var titles []string
	objects := 0
	for _, change := range p.changes {
		switch {
		case change.bookkeeping():
		case change.Op == "create" && strings.HasPrefix(change.Type, "kubernetes:"):
			objects++
		default:
			titles = append(titles, change.title())
		}
	}
	if objects > 0 {
		titles = append(titles, "+ "+input.Count(objects, "Kubernetes object"))
	}
	slices.Sort(titles)
	return titles
}

// diff is the change of each resource and of the outputs, sorted, because the engine has no order.
func (p *preview) diff() string {
	var blocks []string
	for _, s := range p.changes {
		lines := differences(s.Old.Inputs, s.New.Inputs)
		switch {
		case s.Op == "delete":
			lines = "" // nothing stays
		case s.Op != "update" && strings.HasSuffix(s.Type, ":CustomResourceDefinition"):
			// Thousands of lines of a controller's schema, and nothing that a reviewer decides.
			lines = fmt.Sprintf("%s     %d values, SHA-256 %.8x\n", s.sign(), strings.Count(lines, "\n"), sha256.Sum256([]byte(lines)))
		case lines == "":
			for _, path := range slices.Sorted(maps.Keys(s.DetailedDiff)) {
				lines += "!     " + path + "\n"
			}
		}
		blocks = append(blocks, s.title()+"\n"+lines)
	}
	if lines := differences(p.outputs.Old.Outputs, p.outputs.New.Outputs); lines != "" {
		blocks = append(blocks, "outputs\n"+lines)
	}
	slices.Sort(blocks)
	return strings.Join(blocks, "")
}

// differences lists the values that differ, each with its path.
func differences(before, after map[string]any) string {
	was, is := map[string]string{}, map[string]string{}
	flatten("", before, was)
	flatten("", after, is)
	all := maps.Clone(was)
	maps.Copy(all, is)
	var text strings.Builder
	for _, path := range slices.Sorted(maps.Keys(all)) {
		a, had := was[path]
		b, has := is[path]
		switch {
		case !had:
			fmt.Fprintf(&text, "+     %s: %s\n", path, b)
		case !has:
			fmt.Fprintf(&text, "-     %s: %s\n", path, a)
		case a != b:
			fmt.Fprintf(&text, "!     %s: %s => %s\n", path, a, b)
		}
	}
	return text.String()
}

// unknown is how the engine writes a value that only the update computes.
const unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

// flatten adds each value below a path, without what a provider notes for itself. A text of several lines is a digest:
// the change of a script is for the pull request to show.
func flatten(path string, value any, into map[string]string) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			// The annotation repeats, as a digest, the changes of the pods beside it.
			if !strings.HasPrefix(name, "__") && name != config.PodsAnnotation {
				flatten(strings.TrimPrefix(path+"."+name, "."), inner, into)
			}
		}
	case []any:
		for i, inner := range value {
			flatten(fmt.Sprintf("%s[%d]", path, i), inner, into)
		}
	case string:
		switch {
		case value == unknown:
			into[path] = "computed"
		case strings.Contains(value, "\n"):
			into[path] = fmt.Sprintf("%d lines, SHA-256 %.8x", strings.Count(value, "\n"), sha256.Sum256([]byte(value)))
		default:
			into[path] = fmt.Sprintf("%q", value)
		}
	default:
		text, _ := json.Marshal(value) // a number, true, false or null
		into[path] = string(text)
	}
}

// fingerprint returns the same for two previews that would do the same, and "none" where nothing changes.
func (p *preview) fingerprint() string {
	diff := p.diff()
	if diff == "" {
		return "none"
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(diff)))[:16]
}

// counts returns how many resources change by operation, like "3 to create".
func (p *preview) counts() string {
	of, counts := map[string]int{}, []string{}
	for _, change := range p.changes {
		if !change.bookkeeping() {
			of[change.Op]++
		}
	}
	for _, operation := range operations {
		if of[operation] > 0 {
			counts = append(counts, fmt.Sprintf("%d to %s", of[operation], operation))
		}
	}
	return cmp.Or(strings.Join(counts, ", "), "no changes")
}

// readPreview runs `pulumi preview`, or another command that prints the engine's events, one JSON object a line. It
// writes what the command says beside them to log, and returns the command's exit code. It returns an error if the
// command did not run.
func readPreview(stack string, command []string, log io.Writer) (*preview, int, error) {
	if len(command) == 0 {
		command = []string{"pulumi", "preview", "--stack", stack, "--json", "--non-interactive", "--color", "never"}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true")
	var events, said strings.Builder
	cmd.Stdout, cmd.Stderr = &events, io.MultiWriter(&said, log)
	code, err := 0, cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		// A command that a signal has ended has no exit code.
		code = max(exit.ExitCode(), 1)
	} else if err != nil {
		return nil, 1, err
	}
	p := read(events.String())
	p.said += said.String()
	return p, code, nil
}

// previewAndComment writes the comment of a preview to out, and its messages and changes to log.
func previewAndComment(stack, title string, command []string, out, log io.Writer) error {
	p, code, err := readPreview(stack, command, log)
	if err == nil {
		_, err = fmt.Fprint(log, p.messages, p.diff())
	}
	if err == nil {
		_, err = io.WriteString(out, comment(title, stack, p, code))
	}
	return ends(code, err)
}

// previewOf returns a preview, or why it failed.
func previewOf(stack string, command []string, log io.Writer) (*preview, error) {
	_, _ = fmt.Fprintf(log, "previewing the stack %s …\n", stack)
	p, code, err := readPreview(stack, command, log)
	if err == nil && code != 0 {
		// Without an error of the engine, the command says why, here or in the log.
		if why := cmp.Or(strings.Join(p.errors, "\n"), strings.TrimSpace(p.messages)); why != "" {
			err = errors.New(wrapped(why, terminalWidth(os.Stderr)))
		}
	}
	return p, ends(code, err)
}

// restarts returns what the program says of pods that end (effects.Text).
func (p *preview) restarts() []string {
	var texts []string
	for line := range strings.SplitSeq(p.effects, "\n") {
		if text, ends := strings.CutPrefix(line, "! "); ends {
			texts = append(texts, text)
		}
	}
	return texts
}

// summary is the preview for scripts: docs/reference/output.schema.json.
func (p *preview) summary() any {
	type change struct {
		Operation string `json:"operation"`
		Type      string `json:"type"`
		Name      string `json:"name"`
		URN       string `json:"urn"`
		Kept      bool   `json:"kept"`
	}
	changes := []change{}
	for _, step := range p.changes {
		if !step.bookkeeping() {
			changes = append(changes, change{step.Op, step.Type, step.name(), step.URN, step.kept() != ""})
		}
	}
	lines := func(text string) []string {
		texts := []string{}
		for line := range strings.Lines(text) {
			texts = append(texts, strings.TrimLeft(strings.TrimSpace(line), "-! "))
		}
		return texts
	}
	return map[string]any{
		"changes": changes, "needs": p.sum, "cost": p.cost, "hourlyCost": map[string]any{
			"before": p.outputs.Old.Outputs["hourlyCost"], "after": p.outputs.New.Outputs["hourlyCost"],
		},
		"effects": lines(p.effects), "restarts": append([]string{}, p.restarts()...), "warnings": append([]string{}, p.warnings...),
		"fingerprint": p.fingerprint(),
	}
}

// held returns an error with the exit code 3 if the preview does something that must not happen.
func (p *preview) held(failOn []string) error {
	var why []string
	if slices.Contains(failOn, "restart") {
		why = p.restarts()
	}
	for _, change := range p.changes {
		// Each change of a script replaces the ConfigMap with it.
		isScript := change.Type == "kubernetes:core/v1:ConfigMap"
		if slices.Contains(failOn, "delete") && change.removes() && !change.bookkeeping() && change.kept() == "" && !isScript {
			why = append(why, change.title())
		}
	}
	if len(why) == 0 {
		return nil
	}
	return ends(3, fmt.Errorf("held by --fail-on %s:\n%s", strings.Join(failOn, ","), strings.Join(why, "\n")))
}
