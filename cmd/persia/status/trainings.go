package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"persia/config"
)

// Training is a training job.
type Training struct {
	Job, Namespace string
	// State is for people.
	State string
	// End is how it has ended, or "".
	End batchv1.JobConditionType
}

// List returns all training jobs that report their end, by name.
func List(ctx context.Context, client kubernetes.Interface) ([]Training, error) {
	jobs, err := client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: config.JobLabel + ",app.kubernetes.io/name=completion",
	})
	if err != nil {
		return nil, fmt.Errorf("read the state of the training jobs: %w", err)
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: config.JobLabel})
	if err != nil {
		return nil, fmt.Errorf("read the state of the training jobs: %w", err)
	}
	return Of(jobs.Items, pods.Items), nil
}

const (
	// Poll is how often Await looks at the training jobs.
	Poll = time.Second
	// Patience is how long the API server may fail to answer: trainings go on without it.
	Patience = 2 * time.Minute
)

// Await passes all training jobs to a function, again and again until that has seen the end. It
// returns the function's error, or one if the API server does not answer for minutes.
func Await(ctx context.Context, client kubernetes.Interface, see func([]Training) (ended bool, err error)) error {
	answered := time.Now()
	for {
		all, err := List(ctx, client)
		if err == nil {
			answered = time.Now()
			if ended, err := see(all); ended {
				return err
			}
		} else if time.Since(answered) > Patience {
			return fmt.Errorf("no answer for %s: %w", Patience, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(Poll):
		}
	}
}

// Follow shows how a training job goes on until it has ended, and returns an error if it has failed.
func Follow(ctx context.Context, cluster *rest.Config, job string, out io.Writer) error {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return err
	}
	said := ""
	return Await(ctx, client, func(all []Training) (bool, error) {
		all = slices.DeleteFunc(all, func(training Training) bool { return training.Job != job })
		if len(all) == 0 {
			return true, fmt.Errorf("no training job %s reports its completion", job)
		}
		if now := all[len(all)-1].State; now != said {
			said = now
			fmt.Fprintln(out, now)
		}
		return Ended(all)
	})
}

// Ended reports whether all training jobs have ended, and which have failed. A changed job may be
// there twice, as it was and as it is.
func Ended(all []Training) (bool, error) {
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

// Coordinator returns the name of the pod of nn-worker 0, which coordinates a training job, or
// "" if the job has none.
func Coordinator(ctx context.Context, client kubernetes.Interface, namespace, job string) (string, error) {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: config.JobLabel + "=" + job})
	if err != nil {
		return "", fmt.Errorf("find nn-worker 0 of the training job %s: %w", job, err)
	}
	return coordinator(job, pods.Items), nil
}

// coordinator prefers a substitute to the pod of a lost node, which stays until its node is gone.
func coordinator(job string, pods []corev1.Pod) string {
	first := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !isFirst(job, pod) })
	if len(first) == 0 {
		return ""
	}
	return slices.MaxFunc(first, func(a, b corev1.Pod) int {
		if aGoes, bGoes := a.DeletionTimestamp != nil, b.DeletionTimestamp != nil; aGoes != bGoes {
			return map[bool]int{true: -1, false: 1}[aGoes]
		}
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}).Name
}

// isFirst reports whether a pod is nn-worker 0, by the labels of its StatefulSet or JobSet.
// PERSIA's operator gives a pod no label but the job's.
func isFirst(job string, pod corev1.Pod) bool {
	if pod.Labels["app.kubernetes.io/name"] == config.KindNNWorker.Name {
		return pod.Labels[appsv1.PodIndexLabel] == "0" || pod.Labels[batchv1.JobCompletionIndexAnnotation] == "0"
	}
	return pod.Name == job+"-"+config.KindNNWorker.Name+"-0"
}

// Of returns the training jobs that Kubernetes Jobs end with, by name.
func Of(jobs []batchv1.Job, pods []corev1.Pod) []Training {
	var all []Training
	for _, job := range jobs {
		training := Training{Job: job.Labels[config.JobLabel], Namespace: job.Namespace}
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

// endOf returns the condition that says how a Job has ended, or nil.
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
		if pod.Labels[config.JobLabel] != job || pod.Labels["app.kubernetes.io/name"] == "completion" {
			continue
		}
		total++
		if Ready(pod) {
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
