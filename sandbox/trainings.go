package sandbox

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"persia/cmd/persia/status"
)

// AwaitTrainings waits until all training jobs of the stack are complete. It shows how they go on and
// what their scripts report. A job that has failed is an error, once all have ended.
func (s *Sandbox) AwaitTrainings(ctx context.Context) error {
	config, err := s.cluster.RESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
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

// reportLine matches what a script logs about its model.
var reportLine = regexp.MustCompile(`step \d+ of \d+, loss [-+.\deE]+|(?m:^RESULT \{.*\}$)`)

// reported returns the last report in the log of a training's nn-worker 0, or "". The training does not
// need its log to be readable. A kubelet may hang.
func reported(ctx context.Context, client kubernetes.Interface, training status.Training) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	pod, err := status.Coordinator(ctx, client, training.Namespace, training.Job)
	if err != nil || pod == "" {
		return ""
	}
	log, _ := client.CoreV1().Pods(training.Namespace).GetLogs(pod, &corev1.PodLogOptions{TailLines: new(int64(100))}).DoRaw(ctx)
	return lastReport(log)
}

func lastReport(log []byte) string {
	if lines := reportLine.FindAll(log, -1); len(lines) > 0 {
		return string(lines[len(lines)-1])
	}
	return ""
}
