package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"persia/sandbox/node"
	"persia/workload/persia"
)

// trainingPoll is how often trainings are looked at.
const trainingPoll = time.Second

// AwaitTrainings waits until all training jobs of the stack are complete, and shows how
// they go on. One that has failed is an error, once all have ended.
func (s *Sandbox) AwaitTrainings(ctx context.Context) error {
	config, err := s.cluster.RESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	started, last := time.Now(), ""
	for {
		jobs, pods, err := listTrainings(ctx, client)
		if err != nil {
			return err
		}
		if now := trainings(jobs, pods); now != last {
			fmt.Fprintf(s.options.Out, "%5s  %s\n", time.Since(started).Round(time.Second), now)
			last = now
		}
		if ended, err := trained(jobs, pods); ended {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(trainingPoll):
		}
	}
}

// PeakMemory is the most memory, in bytes, that the real node has used so far.
func (s *Sandbox) PeakMemory() (int64, error) { return node.PeakMemory(s.path("node")) }

// trained tells whether all trainings have ended, and which have failed. Without any
// there is nothing to wait for.
func trained(jobs []batchv1.Job, pods []corev1.Pod) (ended bool, err error) {
	if len(jobs) == 0 {
		return true, errors.New("no training tells when it is complete: set enableMetrics for one of persia:jobs")
	}
	var failures []error
	for _, job := range jobs {
		switch condition := endOf(job); {
		case condition == nil:
			return false, nil
		case condition.Type == batchv1.JobFailed:
			failures = append(failures, fmt.Errorf("the training %s has %s", job.Labels[persia.JobLabel], failure(job, *condition, pods)))
		}
	}
	return true, errors.Join(failures...)
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

// trainingState says how a training is.
type trainingState struct {
	job, state string
	ended      bool
}

// trainingStates are those of all trainings, by name.
func trainingStates(jobs []batchv1.Job, pods []corev1.Pod) []trainingState {
	var states []trainingState
	for _, job := range jobs {
		name := job.Labels[persia.JobLabel]
		ready, total, restarts := 0, 0, 0
		for _, pod := range pods {
			if pod.Labels[persia.JobLabel] != name || pod.Labels["app.kubernetes.io/name"] == "completion" {
				continue
			}
			total++
			if podReady(pod) {
				ready++
			}
			for _, container := range pod.Status.ContainerStatuses {
				restarts += int(container.RestartCount)
			}
		}
		state := fmt.Sprintf("%d of %d pods are ready", ready, total)
		if restarts > 0 {
			state += fmt.Sprintf(", containers were started again %d times", restarts)
		}
		end := endOf(job)
		switch {
		case end == nil:
		case end.Type == batchv1.JobFailed:
			state = failure(job, *end, pods)
		default:
			state = "complete"
		}
		states = append(states, trainingState{job: name, state: state, ended: end != nil})
	}
	slices.SortFunc(states, func(a, b trainingState) int { return strings.Compare(a.job, b.job) })
	return states
}

// trainings says how the trainings are, on one line.
func trainings(jobs []batchv1.Job, pods []corev1.Pod) string {
	var words []string
	for _, training := range trainingStates(jobs, pods) {
		words = append(words, training.job+": "+training.state)
	}
	return strings.Join(words, "; ")
}

// listTrainings are the Jobs that end with the trainings, and the pods of all jobs.
func listTrainings(ctx context.Context, client kubernetes.Interface) ([]batchv1.Job, []corev1.Pod, error) {
	jobs, err := client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: persia.JobLabel + ",app.kubernetes.io/name=completion",
	})
	if err != nil {
		return nil, nil, fmt.Errorf("look at the trainings: %w", err)
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: persia.JobLabel})
	if err != nil {
		return nil, nil, fmt.Errorf("look at the trainings: %w", err)
	}
	return jobs.Items, pods.Items, nil
}
