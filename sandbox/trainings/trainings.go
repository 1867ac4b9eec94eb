// Package trainings follows the training jobs in a cluster to their end.
package trainings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"persia/workload/persia"
)

const (
	// poll is how often Await looks at the training jobs.
	poll = time.Second
	// patience is how long the API server may fail to answer: trainings go on without it.
	patience = 2 * time.Minute
)

// Training is a training job.
type Training struct {
	Job string
	// State is for people.
	State string
	// End is how it has ended, or "".
	End batchv1.JobConditionType
}

// List returns all training jobs that tell how they end, by name.
func List(ctx context.Context, client kubernetes.Interface) ([]Training, error) {
	jobs, err := client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: persia.JobLabel + ",app.kubernetes.io/name=completion",
	})
	if err != nil {
		return nil, fmt.Errorf("read the state of the training jobs: %w", err)
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: persia.JobLabel})
	if err != nil {
		return nil, fmt.Errorf("read the state of the training jobs: %w", err)
	}
	return of(jobs.Items, pods.Items), nil
}

// Await waits until all training jobs have ended, and writes how they go on. One that
// has failed is an error, and so is an API server that does not answer for minutes.
func Await(ctx context.Context, client kubernetes.Interface, out io.Writer) error {
	started, answered, last := time.Now(), time.Now(), ""
	for {
		all, err := List(ctx, client)
		if err == nil {
			answered = time.Now()
			if now := line(all); now != last {
				fmt.Fprintf(out, "%5s  %s\n", time.Since(started).Round(time.Second), now)
				last = now
			}
			if ended, err := result(all); ended {
				return err
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

// Print shows how training jobs have ended, if any have.
func Print(out io.Writer, all []Training) {
	if !slices.ContainsFunc(all, func(training Training) bool { return training.End != "" }) {
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nTRAINING JOB\tSTATE")
	for _, training := range all {
		fmt.Fprintf(table, "%s\t%s\n", training.Job, training.State)
	}
	_ = table.Flush()
}

// result tells whether all training jobs have ended, and which have failed. Without any
// there is nothing to wait for.
func result(all []Training) (ended bool, err error) {
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
func line(all []Training) string {
	var words []string
	for _, training := range all {
		words = append(words, training.Job+": "+training.State)
	}
	return strings.Join(words, "; ")
}

// of are the training jobs that Kubernetes Jobs end with, by name.
func of(jobs []batchv1.Job, pods []corev1.Pod) []Training {
	var all []Training
	for _, job := range jobs {
		training := Training{Job: job.Labels[persia.JobLabel]}
		switch end := endOf(job); {
		case end == nil:
			training.State = progress(training.Job, pods)
		case end.Type == batchv1.JobFailed:
			training.State, training.End = failure(job, *end, pods), end.Type
		default:
			training.State, training.End = "complete", end.Type
		}
		all = append(all, training)
	}
	slices.SortFunc(all, func(a, b Training) int { return strings.Compare(a.Job, b.Job) })
	return all
}

// endOf is the condition that says how a Job has ended, or nil.
func endOf(job batchv1.Job) *batchv1.JobCondition {
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
			return &condition
		}
	}
	return nil
}

// failure says why a training has failed: the last words of its completion, which are
// the coordinator's, or what Kubernetes says.
func failure(job batchv1.Job, condition batchv1.JobCondition, pods []corev1.Pod) string {
	for _, pod := range pods {
		if !metav1.IsControlledBy(&pod, &job) {
			continue
		}
		for _, container := range pod.Status.ContainerStatuses {
			if end := container.State.Terminated; end != nil {
				message := strings.TrimSpace(end.Message)
				if last := message[strings.LastIndex(message, "\n")+1:]; strings.HasPrefix(last, "failed") {
					return last
				}
			}
		}
	}
	return fmt.Sprintf("failed: %s: %s", condition.Reason, condition.Message)
}

// progress says how the pods of a job's roles are.
func progress(job string, pods []corev1.Pod) string {
	ready, total, restarts := 0, 0, 0
	for _, pod := range pods {
		if pod.Labels[persia.JobLabel] != job || pod.Labels["app.kubernetes.io/name"] == "completion" {
			continue
		}
		total++
		if slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		}) {
			ready++
		}
		for _, container := range pod.Status.ContainerStatuses {
			restarts += int(container.RestartCount)
		}
	}
	state := fmt.Sprintf("%d of %d pods are ready", ready, total)
	if restarts > 0 {
		state += fmt.Sprintf(", containers were restarted %d times", restarts)
	}
	return state
}
