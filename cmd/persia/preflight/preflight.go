// Package preflight checks what `pulumi up` of a stack finds out only after minutes, when a part of
// the stack is there: APIs, quotas, machines, buckets, and the way to the control plane. `pulumi
// preview` itself says what it lacks, like a login or a plugin.
//
// It asks the user's gcloud, whose logins, projects and proxies the user has set up. What gcloud may not see or cannot
// reach is unchecked, which is no failure.
package preflight

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"persia/config"
	"persia/config/input"
)

// Status is the result of a check.
type Status string

// The statuses, from the best to the worst.
const (
	OK Status = "ok"
	// Unchecked means that the check could not run. The detail says why.
	Unchecked Status = "unchecked"
	// Warning means that `pulumi up` may fail, or works with a limitation.
	Warning Status = "warning"
	// Missing means that `pulumi up` fails.
	Missing Status = "missing"
)

// Check is one thing that `up` needs. The remedy is mostly a command, and empty if all is well.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"`
}

// Run makes all checks of a stack. Without gcloud, it checks what needs no network. It returns an error if the stack
// file cannot be read or has mistakes, because the needs of the stack are then unknown.
func Run(ctx context.Context, name string, gcloud Gcloud) ([]Check, error) {
	stack, err := Load(name)
	if err != nil {
		return nil, err
	}
	r := &report{stack: stack, gcloud: gcloud, answers: map[string]answer{}}
	plan := stack.Plan()
	r.add("stack file", OK, fmt.Sprintf("its %s fit on %s", input.Count(plan.Pods, "pod"), input.Count(plan.Nodes, "node")), "")
	if stack.Cluster.Existing != nil {
		return r.checks, nil
	}
	r.controlPlane()
	r.authPlugin()
	r.credentials(ctx)
	if !r.project(ctx) {
		// The other checks still list the needs of the stack.
		r.gcloud = func(context.Context, ...string) ([]byte, error) { return nil, errors.New("the project did not answer") }
	}
	r.apis(ctx)
	r.quotas(ctx)
	r.machines(ctx)
	r.buckets(ctx)
	r.caches(ctx)
	return r.checks, nil
}

// report collects the checks of a stack.
type report struct {
	stack  *config.Stack
	gcloud Gcloud
	// answers are of gcloud, by its arguments: one region has many quotas.
	answers map[string]answer
	checks  []Check
}

type answer struct {
	text []byte
	err  error
}

func (r *report) add(name string, status Status, detail, remedy string) {
	r.checks = append(r.checks, Check{name, status, detail, remedy})
}

// question asks gcloud about one thing.
type question struct {
	name    string
	command []string
	// needs says what the stack needs. The report shows it if gcloud does not answer.
	needs string
	// refused are errors of gcloud that mean that something is missing.
	refused []refusal
}

// refusal has parts of an error, and what to do. The detail is the error by default.
type refusal struct {
	texts          []string
	detail, remedy string
}

// absent are gcloud's messages about what does not exist.
var absent = []string{"was not found", "not found: 404", "NOT_FOUND"}

// ask decodes gcloud's answer, if into is not nil, and reports whether there is one. If there is none, it adds a check
// that says why.
func (r *report) ask(ctx context.Context, q question, into any) bool {
	if into != nil {
		q.command = append(q.command, "--format=json")
	}
	command := strings.Join(q.command, " ")
	a, asked := r.answers[command]
	if !asked {
		a.text, a.err = r.gcloud(ctx, q.command...)
		r.answers[command] = a
	}
	for _, refusal := range q.refused {
		if says(a.err, refusal.texts) {
			r.add(q.name, Missing, cmp.Or(refusal.detail, fmt.Sprint(a.err)), refusal.remedy)
			return false
		}
	}
	why := a.err
	if why == nil {
		if into == nil || json.Unmarshal(a.text, into) == nil {
			return true
		}
		why = errors.New("gcloud printed unexpected output")
	}
	if q.needs != "" {
		why = fmt.Errorf("%w; needed: %s", why, q.needs)
	}
	r.add(q.name, Unchecked, why.Error(), "")
	return false
}

// exists checks that there is something, and reports whether there is.
func (r *report) exists(ctx context.Context, q question, detail string) bool {
	if !r.ask(ctx, q, nil) {
		return false
	}
	r.add(q.name, OK, detail, "")
	return true
}

// says reports whether an error has one of some texts. A failure of the network may repeat an older message of Google
// Cloud, and does not count.
func says(err error, texts []string) bool {
	return err != nil && !strings.Contains(err.Error(), "Max retries exceeded") &&
		slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// Failed reports whether anything is missing.
func Failed(checks []Check) bool {
	return slices.ContainsFunc(checks, func(c Check) bool { return c.Status == Missing })
}

// Print writes the checks as a table, the worst last, followed by what to do.
func Print(w io.Writer, checks []Check) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	remedies, counts := "", []string{}
	for _, status := range []Status{OK, Unchecked, Warning, Missing} {
		count := 0
		for _, c := range checks {
			if c.Status != status {
				continue
			}
			count++
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", c.Status, c.Name, c.Detail) // Flush tells
			if c.Remedy != "" {
				remedies += fmt.Sprintf("\n  %s: %s\n      %s\n", c.Status, c.Name, c.Remedy)
			}
		}
		counts = append(counts, fmt.Sprintf("%s: %d", status, count))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if remedies != "" {
		remedies = "\nWhat to do:\n" + remedies
	}
	slices.Reverse(counts)
	_, err := fmt.Fprintf(w, "%s\n%s\n", remedies, strings.Join(counts, ", "))
	return err
}

// sealed replaces each encrypted value, which preflight cannot decrypt.
const sealed = "encrypted"

// Load loads a stack of the working directory as the program does, but for its encrypted values.
func Load(name string) (*config.Stack, error) {
	files, path := os.DirFS("."), input.StackFileName(name)
	file, err := input.ReadStackFile(files, path, config.Namespace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no stack %q: %w; %s", name, err, input.StackNames(files))
	}
	if err != nil {
		return nil, err
	}
	values := file.Config.Open(func([]any, string) string { return sealed })
	stack, err := config.Load(values.Get, files)
	if ignored := file.CheckKeys(config.Namespace, config.Keys()); ignored != nil {
		err = ignored
	}
	if err != nil && file.Settings[input.Environment] != nil {
		err = fmt.Errorf("%w\nthe stack's ESC environment may set more: run `pulumi preview`, which opens it", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return stack, nil
}

// Gcloud runs a command of gcloud, and returns what it prints. The error has the message of gcloud.
type Gcloud func(ctx context.Context, args ...string) ([]byte, error)

// CLI runs the gcloud on the PATH, without prompts. It gives each command half a minute.
func CLI(ctx context.Context, args ...string) ([]byte, error) {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, "gcloud", args...)
	command.Env = append(os.Environ(), "CLOUDSDK_CORE_DISABLE_PROMPTS=1")
	// A process that the command left behind may keep its output open.
	command.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("gcloud did not answer within %s", patience)
	case errors.As(err, &exit):
		return nil, errors.New(message(stderr.String()))
	}
	return stdout.Bytes(), err
}

// message returns the line of gcloud's error output that names the problem. If that line ends with a colon, the next
// one belongs to it.
func message(stderr string) string {
	_, text, found := strings.Cut(stderr, "ERROR: ")
	if !found {
		text = stderr
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if strings.HasSuffix(first, ":") {
		next, _, _ := strings.Cut(rest, "\n")
		first += " " + strings.TrimPrefix(strings.TrimSpace(next), "- ")
	}
	return first
}
