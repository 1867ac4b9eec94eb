package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"persia/cmd/persia/status"
)

// report collects what a training's first nn-worker logs about the model: lines with
// "step N of M, loss X", and one line that starts with RESULT and continues with a JSON
// object.
type report struct {
	// read is the time of the last line.
	read time.Time
}

var stepLine = regexp.MustCompile(`step (\d+) of (\d+), loss ([-+.\deE]+)`)

const (
	resultPrefix = "RESULT "
	// logTimeout is how long one look at a log may take: a kubelet may hang.
	logTimeout = 10 * time.Second
	// longestLine is the longest line of a log, in bytes. Progress bars are one line.
	longestLine = 16 << 20
)

// follow reads the new lines of a log, and returns the ones to show.
func (r *report) follow(ctx context.Context, client kubernetes.Interface, namespace, job string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	options := &corev1.PodLogOptions{Timestamps: true}
	if !r.read.IsZero() {
		since := metav1.NewTime(r.read)
		options.SinceTime = &since
	}
	pod, err := status.Coordinator(ctx, client, namespace, job)
	if err != nil || pod == "" {
		return nil, err
	}
	log, err := client.CoreV1().Pods(namespace).GetLogs(pod, options).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the log of %s: %w", job, err)
	}
	defer func() { _ = log.Close() }()
	return r.lines(log)
}

// lines takes the lines of a log with timestamps, and returns the ones to show.
func (r *report) lines(log io.Reader) ([]string, error) {
	var shown []string
	scanner := bufio.NewScanner(log)
	scanner.Buffer(nil, longestLine)
	for scanner.Scan() {
		stamp, text, _ := strings.Cut(scanner.Text(), " ")
		written, err := time.Parse(time.RFC3339Nano, stamp)
		// A log since a time has whole seconds, so it repeats lines.
		if err != nil || !written.After(r.read) {
			continue
		}
		r.read = written
		if line := lineOf(text); line != "" {
			shown = append(shown, line)
		}
	}
	return shown, scanner.Err()
}

// lineOf returns how to show a line, or "".
func lineOf(text string) string {
	if step := stepLine.FindStringSubmatch(text); step != nil {
		return step[0]
	}
	if object, found := strings.CutPrefix(text, resultPrefix); found {
		var result map[string]any
		if json.Unmarshal([]byte(object), &result) != nil {
			return ""
		}
		return "result: " + words(result)
	}
	return ""
}

// words lists the values of a result by name.
func words(result map[string]any) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(result)) {
		all = append(all, fmt.Sprintf("%s %v", strings.ReplaceAll(name, "_", " "), result[name]))
	}
	return strings.Join(all, ", ")
}
