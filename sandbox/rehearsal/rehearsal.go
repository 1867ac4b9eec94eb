// Package rehearsal brings a stack up as it is, updates it to what it shall be, and compares what the preview announces
// with what happens.
package rehearsal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/auto/events"

	"persia/config"
	"persia/internal/status"
	"persia/sandbox"
	"persia/sandbox/process"
	"persia/stack/effects"
)

// Options describe a rehearsal. The embedded options are those of the change. No other sandbox may use their Dir.
type Options struct {
	sandbox.Options
	// Base names what the stack is brought up from: the stack file in BaseStacks, with the program of BaseProject, or with
	// that of the change if BaseSandbox is "". BaseSandbox is the base's own sandbox command, next to its programs.
	Base, BaseStacks, BaseProject, BaseSandbox string
	// Destroy also takes the stack down and brings it up again.
	Destroy bool
	// Build compiles the programs that a sandbox runs.
	Build func(*sandbox.Sandbox) error
	// Progress shows the steps. Out of the sandbox's options has what the engine says.
	Progress io.Writer
}

// rehearsal is a run.
type rehearsal struct {
	Options
	Summary
	change    *sandbox.Sandbox
	announced []effects.Effect // by the last preview or update
	seen      steps
}

// Run rehearses a change, and leaves nothing behind. An error is of the rehearsal: what is refused is in the summary.
func Run(ctx context.Context, options Options) (_ Summary, err error) {
	r := &rehearsal{Options: options, Summary: Summary{stack: options.Stack, base: options.Base, began: time.Now()}}
	r.Announce = func(all []effects.Effect) {
		if options.Announce != nil {
			options.Announce(all)
		}
		r.announced = all
	}
	if r.change, err = sandbox.New(r.Options.Options); err != nil {
		return r.Summary, err
	}
	r.placeholders = r.change.Placeholders()
	waiting, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return r.Summary, err
	}
	unlock, err := process.Lock(waiting, filepath.Join(r.Dir, "lock"))
	if err != nil {
		return r.Summary, fmt.Errorf("wait for another rehearsal of the stack %s: %w", r.Stack, err)
	}
	defer unlock()
	if err := r.change.Discard(ctx); err != nil { // what one that was killed has left
		return r.Summary, err
	}
	defer func() { err = cmp.Or(err, r.change.Discard(context.WithoutCancel(ctx))) }()
	if err = r.rehearse(ctx); errors.As(err, &r.refusals) {
		err = nil
	}
	return r.Summary, err
}

// step is a part of a rehearsal.
type step struct {
	what string
	do   func() error
}

// run makes steps, until one is refused.
func (r *rehearsal) run(ctx context.Context, all ...step) error {
	for _, step := range all {
		began := time.Now()
		_, _ = fmt.Fprintf(r.Progress, "%5s  %s\n", began.Sub(r.began).Round(time.Second), step.what)
		r.seen = steps{}
		err := step.do()
		r.took = append(r.took, fmt.Sprintf("%s %s", step.what, time.Since(began).Round(time.Second)))
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("the rehearsal was interrupted: %w", context.Cause(ctx))
		case err != nil && len(r.seen.refusals) > 0:
			err = r.seen.refusals
		case err != nil && !errors.As(err, new(refusals)):
			err = refusalsOf("", step.what, err.Error())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *rehearsal) rehearse(ctx context.Context) error {
	var before, after snapshot
	var planned steps
	var announced []effects.Effect
	var cfg *config.Stack
	preview := func() error { return r.change.Preview(ctx, r.seen.add) }
	up := func(s *sandbox.Sandbox) func() error { return func() error { return s.Update(ctx, r.seen.add) } }
	settle := func(into *snapshot, before *snapshot) func() error {
		return func() (err error) { *into, err = r.settled(ctx, cfg, *before, announced); return err }
	}
	err := r.run(ctx, step{"read the stack file", func() (err error) { cfg, err = r.change.Config(); return err }},
		step{"compile programs", func() error { return r.Build(r.change) }})
	if err == nil && r.BaseStacks != "" {
		wanted := cfg
		cfg = &config.Stack{} // the program of the change may refuse the base's
		err = r.run(ctx, step{"bring up " + r.Base, func() error { return r.upBase(ctx) }},
			step{"wait for its pods", settle(&before, &snapshot{})})
		if cfg = wanted; errors.As(err, &r.baseRefusals) { // which this change may mend
			before, err = snapshot{}, r.change.Discard(ctx)
		}
	}
	if err != nil {
		return err
	}
	err = r.run(ctx,
		step{"preview the change", func() error {
			err := preview()
			planned, announced, r.plan = r.seen, r.announced, r.seen.counts()
			return err
		}},
		step{"bring it up", func() error { err := up(r.change)(); r.unplanned("the preview did not plan", planned); return err }},
		step{"wait for its pods", settle(&after, &before)},
		step{"preview again", func() error { err := preview(); r.unplanned("a second preview plans", steps{}); return err }},
		step{"refresh", func() error {
			drifted, err := r.change.Refresh(ctx)
			if delete(drifted, "same"); len(drifted) > 0 {
				r.problem("the refresh finds what the update did not leave as planned: %v", drifted)
			}
			return err
		}})
	if err != nil {
		return err
	}
	r.compare(before, after, announced, planned.claims, cfg)
	if !r.Destroy {
		return nil
	}
	options := r.Options.Options
	options.Unprotected = true
	unprotected, err := sandbox.New(options)
	if err != nil {
		return err
	}
	announced = nil
	return r.run(ctx, step{"lift its protection", up(unprotected)},
		step{"destroy it", func() (err error) {
			if err = unprotected.Destroy(ctx); err == nil {
				r.found, err = unprotected.Kept()
			}
			return err
		}},
		step{"bring it up again", func() error {
			err := up(unprotected)()
			imports := slices.DeleteFunc(r.seen.done, func(done string) bool { return !strings.HasPrefix(done, "import ") })
			if err == nil && len(imports) < len(r.found) {
				r.problem("destroy kept %d resources with data, and the next up found %d: %s", len(r.found), len(imports), imports)
			}
			return err
		}},
		step{"wait for its pods", settle(&after, &snapshot{})})
}

// upBase brings the stack up as it is at the base.
func (r *rehearsal) upBase(ctx context.Context) error {
	options := r.Options.Options
	if options.Stacks = r.BaseStacks; r.BaseSandbox == "" {
		base, err := sandbox.New(options)
		if err == nil {
			err = r.Build(base)
		}
		if err != nil {
			return err
		}
		return base.Update(ctx, r.seen.add)
	}
	var said strings.Builder
	up := exec.CommandContext(ctx, r.BaseSandbox, "up", "--repository", r.BaseProject, "--stacks", r.BaseStacks, "--stack", r.Stack,
		"--dir", r.Dir, "--toolchain", filepath.Dir(r.BaseSandbox))
	up.Stdout, up.Stderr, up.Cancel = r.Out, &said, func() error { return up.Process.Signal(os.Interrupt) }
	if err := up.Run(); err != nil {
		return fmt.Errorf("%s (%w)", strings.TrimPrefix(strings.TrimSpace(said.String()), "sandbox: "), err)
	}
	return nil
}

// settled waits until all pods are ready, and those that end have ended, for some seconds. Then it returns what there is.
func (r *rehearsal) settled(ctx context.Context, cfg *config.Stack, before snapshot, announced []effects.Effect) (
	last snapshot, err error) {
	const pause, calm, patience = 500 * time.Millisecond, 3 * time.Second, 2 * time.Minute
	cluster, client, err := r.change.Cluster().Access()
	if err != nil {
		return last, err
	}
	for began, changed := time.Now(), time.Now(); ; {
		now, err := look(ctx, client)
		if err != nil {
			return now, err
		}
		if !now.equal(last) {
			last, changed = now, time.Now()
		}
		still := time.Since(changed)
		now.unready = append(now.unready, now.wants(cfg)...)
		if len(now.unready) == 0 && (still > 5*calm || still > calm && !before.keeps(now, announced)) {
			return now, nil
		}
		if time.Since(began) > patience {
			report, err := status.Read(ctx, cluster, time.Now())
			waits := slices.Concat(report.NATS, report.Controllers)
			for _, job := range report.Jobs {
				waits = append(waits, job.Waits...)
			}
			refused := refusals{{"Kubernetes", strings.Join(now.unready, ", "), "not ready after " + patience.String()}}
			for _, wait := range waits {
				refused = append(refused, Refusal{"Kubernetes", wait.Pod, wait.Cause + ": " + wait.Says})
			}
			return now, errors.Join(err, refused)
		}
		select {
		case <-ctx.Done():
			return now, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// steps are what the engine plans or does in a preview or an update.
type steps struct {
	done     []string
	claims   []string // PersistentVolumeClaims that go
	refusals refusals
}

func (s *steps) add(e events.EngineEvent) {
	if said := e.DiagnosticEvent; said != nil && said.Severity == "error" {
		s.refusals = append(s.refusals, refusalsOf(said.URN, "", said.Message)...)
	}
	if e.ResourcePreEvent == nil {
		return
	}
	step := e.ResourcePreEvent.Metadata
	if slices.Contains([]string{"create", "update", "replace", "delete", "import"}, string(step.Op)) {
		s.done = append(s.done, fmt.Sprintf("%s %s", step.Op, step.URN[strings.LastIndex(step.URN, "$")+1:]))
	}
	if step.Type == "kubernetes:core/v1:PersistentVolumeClaim" && step.Old != nil && step.Op != "update" && step.Op != "same" {
		metadata, _ := step.Old.Outputs["metadata"].(map[string]any)
		s.claims = append(s.claims, fmt.Sprint(metadata["name"]))
	}
}

// counts says how many resources change by operation.
func (s steps) counts() string {
	of := map[string]int{}
	for _, done := range s.done {
		operation, _, _ := strings.Cut(done, " ")
		of[operation]++
	}
	if len(of) == 0 {
		return "no change"
	}
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(of), "map["), "]")
}

// unplanned finds what the engine does without a plan.
func (r *rehearsal) unplanned(problem string, plan steps) {
	for _, done := range r.seen.done {
		if !slices.Contains(plan.done, done) {
			r.problem("%s: %s", problem, done)
		}
	}
}
