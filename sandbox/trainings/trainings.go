// Package trainings follows the training jobs in a cluster to their end.
package trainings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/kubernetes"

	"persia/cmd/persia/status"
)

const (
	// poll is how often Await looks at the training jobs.
	poll = time.Second
	// patience is how long the API server may fail to answer: trainings go on without it.
	patience = 2 * time.Minute
)

// Await waits until all training jobs have ended. It writes their progress and the reports of their
// scripts, and draws the losses into the folder. It returns an error if a job has failed, or if the
// API server does not answer for minutes.
func Await(ctx context.Context, client kubernetes.Interface, out io.Writer, folder string) error {
	w := watch{client: client, out: out, started: time.Now(), reports: map[string]*report{}}
	answered := time.Now()
	for {
		all, err := status.List(ctx, client)
		if err == nil {
			answered = time.Now()
			w.show(ctx, all)
			if ended, err := result(all); ended {
				return errors.Join(err, w.draw(folder))
			}
		} else if time.Since(answered) > patience {
			return fmt.Errorf("no answer for %s: %w", patience, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(poll):
		}
	}
}

// watch shows how training jobs go on.
type watch struct {
	client  kubernetes.Interface
	out     io.Writer
	started time.Time
	last    string
	reports map[string]*report
}

func (w *watch) show(ctx context.Context, all []status.Training) {
	if now := line(all); now != w.last {
		w.say(now)
		w.last = now
	}
	for _, training := range all {
		if w.reports[training.Job] == nil {
			w.reports[training.Job] = &report{}
		}
		// The training does not need its log to be readable. The next look repeats what
		// this one misses.
		lines, _ := w.reports[training.Job].follow(ctx, w.client, training.Namespace, training.Job)
		for _, text := range lines {
			w.say(training.Job + ": " + text)
		}
	}
}

func (w *watch) say(text string) {
	fmt.Fprintf(w.out, "%5s  %s\n", time.Since(w.started).Round(time.Second), text)
}

// draw draws the losses of all trainings.
func (w *watch) draw(folder string) error {
	var failures []error
	for _, job := range slices.Sorted(maps.Keys(w.reports)) {
		file, err := w.reports[job].draw(folder, job)
		if file != "" {
			w.say(job + ": the loss is drawn in " + file)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// result reports whether all training jobs have ended, and which have failed. Without a job, they
// have.
func result(all []status.Training) (ended bool, err error) {
	if len(all) == 0 {
		return true, errors.New("no training job reports its completion: persia:jobs is empty, or all jobs have the engine operator")
	}
	var failures []error
	for _, training := range all {
		switch training.End {
		case "":
			return false, nil
		case batchv1.JobFailed:
			failures = append(failures, fmt.Errorf("the training job %s has %s", training.Job, training.State))
		}
	}
	return true, errors.Join(failures...)
}

// line describes the training jobs on one line.
func line(all []status.Training) string {
	var words []string
	for _, training := range all {
		words = append(words, training.Job+": "+training.State)
	}
	return strings.Join(words, "; ")
}
