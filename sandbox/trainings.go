package sandbox

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"persia/cmd/persia/status"
)

// awaitTrainings waits until all training jobs have ended. It writes their progress and the reports of their
// scripts. It returns an error if a job has failed, or if the
// API server does not answer for minutes.
func awaitTrainings(ctx context.Context, client kubernetes.Interface, out io.Writer) error {
	w := watch{client: client, out: out, started: time.Now(), reports: map[string]*report{}}
	return status.Await(ctx, client, func(all []status.Training) (bool, error) {
		w.show(ctx, all)
		return status.Ended(all)
	})
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

// line describes the training jobs on one line.
func line(all []status.Training) string {
	var words []string
	for _, training := range all {
		words = append(words, training.Job+": "+training.State)
	}
	return strings.Join(words, "; ")
}
