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
		jobs, err := client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
			LabelSelector: persia.JobLabel + ",app.kubernetes.io/name=completion",
		})
		if err != nil {
			return fmt.Errorf("look at the trainings: %w", err)
		}
		pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: persia.JobLabel})
		if err != nil {
			return fmt.Errorf("look at the trainings: %w", err)
		}
		if now := trainings(jobs.Items, pods.Items); now != last {
			fmt.Fprintf(s.options.Out, "%5s  %s\n", time.Since(started).Round(time.Second), now)
			last = now
		}
		if ended, err := trained(jobs.Items); ended {
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
func trained(jobs []batchv1.Job) (ended bool, err error) {
	if len(jobs) == 0 {
		return true, errors.New("no training tells when it is complete: set enableMetrics for one of persia:jobs")
	}
	var failures []error
	for _, job := range jobs {
		switch condition := endOf(job); {
		case condition == nil:
			return false, nil
		case condition.Type == batchv1.JobFailed:
			failures = append(failures, fmt.Errorf("the training %s has failed: %s: %s", job.Labels[persia.JobLabel], condition.Reason, condition.Message))
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

// trainings says how the trainings are, on one line.
func trainings(jobs []batchv1.Job, pods []corev1.Pod) string {
	var words []string
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
		if end := endOf(job); end != nil {
			state = strings.ToLower(string(end.Type))
		}
		words = append(words, name+": "+state)
	}
	slices.Sort(words)
	return strings.Join(words, "; ")
}
