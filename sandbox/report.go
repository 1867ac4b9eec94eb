package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
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
	// steps and losses are the points of the curve of the last attempt.
	steps, losses []float64
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
		if line := r.line(text); line != "" {
			shown = append(shown, line)
		}
	}
	return shown, scanner.Err()
}

// line takes a line, and returns how to show it, or "".
func (r *report) line(text string) string {
	if step := stepLine.FindStringSubmatch(text); step != nil {
		number, _ := strconv.ParseFloat(step[1], 64)
		loss, err := strconv.ParseFloat(step[3], 64)
		if err != nil {
			return ""
		}
		if len(r.steps) > 0 && number <= r.steps[len(r.steps)-1] {
			// Another attempt counts its steps from the beginning.
			r.steps, r.losses = nil, nil
		}
		r.steps, r.losses = append(r.steps, number), append(r.losses, loss)
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

// draw writes the curve of the loss as a picture, and returns its path, or "" if there are
// not enough points.
func (r *report) draw(folder, job string) (string, error) {
	if len(r.steps) < 2 {
		return "", nil
	}
	file := filepath.Join(folder, "loss-"+job+".svg")
	err := errors.Join(os.MkdirAll(folder, 0o755), renameio.WriteFile(file, []byte(curve(job, r.steps, r.losses)), 0o644))
	if err != nil {
		return "", fmt.Errorf("draw the loss of %s: %w", job, err)
	}
	return file, nil
}
