package sandbox

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"persia/config"
	"persia/internal/status"
)

// AwaitTrainings waits until all training jobs of the stack are complete. It shows how they go on and
// what their scripts report. A job that has failed is an error, once all have ended.
func (s *Sandbox) AwaitTrainings(ctx context.Context) error {
	_, client, err := s.cluster.Access()
	if err != nil {
		return err
	}
	return awaitTrainings(ctx, client, s.options.Out)
}

// awaitTrainings is [Sandbox.AwaitTrainings] for a cluster. It returns an error if the API server does not
// answer for minutes.
func awaitTrainings(ctx context.Context, client kubernetes.Interface, out io.Writer) error {
	started, said := time.Now(), map[string]string{}
	say := func(of, text string) {
		if text != "" && text != said[of] {
			said[of] = text
			fmt.Fprintf(out, "%5s  %s\n", time.Since(started).Round(time.Second), text)
		}
	}
	return status.Await(ctx, client, func(all []status.Training) (bool, error) {
		var states []string
		for _, training := range all {
			states = append(states, training.Job+": "+training.State)
		}
		say("", strings.Join(states, "; "))
		for _, training := range all {
			if line := reported(ctx, client, training); line != "" {
				say(training.Job, training.Job+": "+line)
			}
		}
		return status.Ended(all)
	})
}

// reported returns the last report in the log of a training's nn-worker 0, or "". The training does not
// need its log to be readable. A kubelet may hang.
func reported(ctx context.Context, client kubernetes.Interface, training status.Training) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	pod := first(training)
	if pod == "" {
		return ""
	}
	log, _ := client.CoreV1().Pods(training.Namespace).GetLogs(pod, &corev1.PodLogOptions{TailLines: new(int64(100))}).DoRaw(ctx)
	for _, line := range slices.Backward(strings.Split(string(log), "\n")) {
		if at := strings.Index(line, "step "); at >= 0 && strings.Contains(line, ", loss ") {
			return line[at:]
		}
		if strings.HasPrefix(line, "RESULT {") {
			return line
		}
	}
	return ""
}

// first returns the name of the pod of nn-worker 0 of a job, or "" if the job has none. A substitute comes before
// the pod of a lost node, which stays until its node is gone.
func first(training status.Training) string {
	var newest corev1.Pod
	for _, pod := range training.Pods {
		goes, newestGoes := pod.DeletionTimestamp != nil, newest.DeletionTimestamp != nil
		newer := newest.Name == "" || newestGoes && !goes || newestGoes == goes && pod.CreationTimestamp.After(newest.CreationTimestamp.Time)
		if newer && isFirst(training.Job, pod) {
			newest = pod
		}
	}
	return newest.Name
}

// isFirst reports whether a pod is nn-worker 0, by the labels of its StatefulSet or JobSet. PERSIA's operator gives a
// pod no label but the job's.
func isFirst(job string, pod corev1.Pod) bool {
	if pod.Labels["app.kubernetes.io/name"] == config.KindNNWorker.Name {
		return pod.Labels[appsv1.PodIndexLabel] == "0" || pod.Labels[batchv1.JobCompletionIndexAnnotation] == "0"
	}
	return pod.Name == job+"-"+config.KindNNWorker.Name+"-0"
}
