package status

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"persia/config"
	"persia/internal/answer"
)

// Training is a training job.
type Training struct {
	Job       string `json:"name"`
	Namespace string `json:"namespace"`
	// State is for people.
	State string `json:"state"`
	// End is how it has ended, or "".
	End batchv1.JobConditionType `json:"end"`
	// Predicted is the share of useful hours in the plan, or "".
	Predicted string `json:"predicted"`
	// nats is the name of its NATS cluster, or "" if that is unknown.
	nats string
	// Answer is the coordinator's last one that its completion has repeated, or nil, and JSON is how it came. If that is of
	// another release, Trouble says what to do, or is "".
	Answer  *answer.Document `json:"-"`
	JSON    json.RawMessage  `json:"answer"`
	Trouble string           `json:"trouble"`
	// Pods are those of its roles and of its completion. owners are the StatefulSets and Jobs that create those of its roles.
	Pods       []corev1.Pod `json:"-"`
	completion []corev1.Pod
	owners     []owner
}

// None says why no training job may be listed.
const None = "no training job reports its completion: none is there, or all have engine: operator and are suspended or have " +
	"restartPolicy: Always"

// List returns all training jobs that report their end, by name.
func List(ctx context.Context, client kubernetes.Interface) ([]Training, error) {
	ofJobs := metav1.ListOptions{LabelSelector: config.JobLabel}
	jobs, noJobs := client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, ofJobs)
	sets, noSets := client.AppsV1().StatefulSets(metav1.NamespaceAll).List(ctx, ofJobs)
	pods, noPods := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, ofJobs)
	if err := cmp.Or(noJobs, noSets, noPods); err != nil {
		return nil, fmt.Errorf("read the state of the training jobs: %w", err)
	}
	all := Of(jobs.Items, pods.Items, ownersOf(sets.Items, jobs.Items))
	for i := range all {
		all[i].listen(ctx, client)
	}
	return all, nil
}

const (
	// Poll is how often Await looks at the training jobs.
	Poll = time.Second
	// Patience is how long the API server may fail to answer: trainings go on without it.
	Patience = time.Hour
)

// ErrUnknown says that how a job goes on is unknown.
var ErrUnknown = errors.New("how the job goes on is unknown")

// Await passes all training jobs to a function, again and again until that has seen the end. It returns the function's
// error, or [ErrUnknown] if the API server does not answer for [Patience].
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
			return fmt.Errorf("%w, without an answer for %s: %w", ErrUnknown, Patience, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
		case <-time.After(Poll):
		}
	}
}

// Follow shows how a training job goes on until it has ended, and returns an error if it has failed, or [ErrUnknown].
// The API server has to answer at first.
func Follow(ctx context.Context, cluster *rest.Config, job string, out io.Writer) error {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return err
	}
	if _, err := List(ctx, client); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	said := ""
	return Await(ctx, client, func(all []Training) (bool, error) {
		all = slices.DeleteFunc(all, func(training Training) bool { return training.Job != job })
		if len(all) == 0 {
			return true, fmt.Errorf("%w: no training job %s reports its completion", ErrUnknown, job)
		}
		if now := all[0].State; now != said {
			said = now
			fmt.Fprintln(out, now)
		}
		return Ended(all)
	})
}

// Ended reports whether all training jobs have ended, and which have failed. It is an error if there are none.
func Ended(all []Training) (bool, error) {
	if len(all) == 0 {
		return true, errors.New(None)
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

func isCompletion(job batchv1.Job) bool {
	return job.Labels["app.kubernetes.io/name"] == config.Completion
}

// Of returns the training jobs that end with one of some Kubernetes Jobs, their completion, by name. During an update,
// a changed job has two, and the newer one counts. owners are the StatefulSets and Jobs that create the pods of roles.
func Of(jobs []batchv1.Job, pods []corev1.Pod, owners []owner) []Training {
	var all []Training
	slices.SortStableFunc(jobs, func(a, b batchv1.Job) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for _, job := range jobs {
		name := job.Labels[config.JobLabel]
		same := func(other Training) bool { return other.Job == name && other.Namespace == job.Namespace }
		if !isCompletion(job) || slices.ContainsFunc(all, same) {
			continue
		}
		others := func(o metav1.Object) bool {
			return o.GetLabels()[config.JobLabel] != name || o.GetNamespace() != job.Namespace
		}
		training := Training{
			Job: name, Namespace: job.Namespace,
			Pods:       slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return others(&pod) }),
			completion: slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, &job) }),
			owners:     slices.DeleteFunc(slices.Clone(owners), func(owner owner) bool { return others(&owner) }),
		}
		contract, _ := config.ContractOf(job.Annotations)
		training.Predicted, training.nats = contract.Useful, contract.NATS
		training.State = progress(training.Pods, training.owners)
		for _, condition := range job.Status.Conditions {
			switch {
			case condition.Status != corev1.ConditionTrue:
			case condition.Type == batchv1.JobComplete:
				training.State, training.End = "complete", condition.Type
			case condition.Type == batchv1.JobFailed:
				training.State, training.End = fmt.Sprintf("failed: %s: %s", condition.Reason, condition.Message), condition.Type
			}
		}
		for _, pod := range training.completion {
			for _, container := range pod.Status.ContainerStatuses {
				if training.End != "" && container.State.Terminated != nil {
					training.hear(container.State.Terminated.Message)
				}
			}
		}
		all = append(all, training)
	}
	slices.SortFunc(all, func(a, b Training) int { return strings.Compare(a.Job, b.Job) })
	return all
}

// listen takes the last line in the log of the completion of a job that goes on.
func (t *Training) listen(ctx context.Context, client kubernetes.Interface) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // a kubelet may hang
	defer cancel()
	for _, pod := range t.completion {
		if t.End != "" || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		// Without it, the state is that of the pods.
		log, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: new(int64(1))}).DoRaw(ctx)
		if err == nil {
			t.hear(string(log))
		}
	}
}

// hear takes the last line of a job's completion: the coordinator's answer, or a text of the completion itself.
func (t *Training) hear(said string) {
	said = strings.TrimSpace(said)
	said = said[strings.LastIndex(said, "\n")+1:]
	fromCoordinator := strings.HasPrefix(said, "{") || strings.Contains(said, " attempt ")
	document, err := answer.Read(said)
	text := json.RawMessage(said)
	if err == nil {
		said = document.String()
	}
	if t.End != "" && !strings.HasPrefix(said, "complete") && !strings.HasPrefix(said, "failed") {
		return // its pod was moved before the end
	}
	switch {
	case err == nil:
		t.Answer, t.JSON = &document, text
	case fromCoordinator && t.End == "":
		t.Trouble = err.Error()
	}
	if !strings.HasPrefix(said, "{") {
		t.State = cmp.Or(said, t.State)
	}
}

// progress says how the pods of a job's roles are, those that are not there included.
func progress(pods []corev1.Pod, owners []owner) string {
	ready, total, restarts := 0, 0, 0
	for _, owner := range owners {
		total += int(max(0, owner.wanted-owner.there))
	}
	for _, pod := range pods {
		if pod.Labels["app.kubernetes.io/name"] == config.Completion {
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
