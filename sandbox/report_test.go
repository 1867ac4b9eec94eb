package sandbox

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestReport(t *testing.T) {
	const (
		log = `2026-11-23T10:00:00.5Z launch.py: attempt 1: running
2026-11-23T10:00:01Z 2026-11-23 10:00:01 nn_worker INFO step 50 of 300, loss 0.6931
2026-11-23T10:00:02.25Z step 100 of 300, loss 0.41
no time
2026-11-23T10:00:03Z RESULT not JSON
`
		more = `2026-11-23T10:00:02.25Z step 100 of 300, loss 0.41
2026-11-23T10:00:04Z RESULT {"auc": 0.865, "trained_batches": 600}
`
	)
	// A progress bar writes over its line.
	again := "2026-11-23T10:00:04.5Z " + strings.Repeat("=", 100_000) + "\n2026-11-23T10:00:05Z step 50 of 300, loss 0.3\n"
	r := &report{}
	for _, c := range []struct {
		name, log string
		want      []string
		steps     []float64
	}{
		{"steps", log, []string{"step 50 of 300, loss 0.6931", "step 100 of 300, loss 0.41"}, []float64{50, 100}},
		{"the result, after lines that were read", more, []string{"result: auc 0.865, trained batches 600"}, []float64{50, 100}},
		{"another attempt, after a long line", again, []string{"step 50 of 300, loss 0.3"}, []float64{50}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines, err := r.lines(strings.NewReader(c.log))
			require.NoError(t, err)
			assert.Equal(t, c.want, lines)
			assert.Equal(t, c.steps, r.steps)
		})
	}
	assert.Equal(t, time.Date(2026, 11, 23, 10, 0, 5, 0, time.UTC), r.read)
}

// TestFollow reads the log of nn-worker 0, and asks for none before its pod is there.
func TestFollow(t *testing.T) {
	labels := map[string]string{"persia_job": "clicks", "app.kubernetes.io/name": "nn-worker", "batch.kubernetes.io/job-completion-index": "0"}
	client := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: "clicks-nn-worker-0-0-x7f2k", Labels: labels}})
	for job, want := range map[string]int{"clicks": 1, "waiting": 0} {
		client.ClearActions()
		_, err := (&report{}).follow(t.Context(), client, "persia", job)
		require.NoError(t, err)
		asked := 0
		for _, action := range client.Actions() {
			if action.GetSubresource() == "log" {
				asked++
			}
		}
		assert.Equal(t, want, asked, job)
	}
}

func TestDraw(t *testing.T) {
	for name, c := range map[string]struct {
		steps, losses []float64
		want          string
	}{
		"no point":     {nil, nil, ""},
		"one point":    {[]float64{50}, []float64{0.7}, ""},
		"a curve":      {[]float64{50, 100, 200}, []float64{0.8, 0.4, 0.2}, `points="200.0,40.0 340.0,175.0 620.0,242.5"`},
		"only zeros":   {[]float64{1, 2}, []float64{0, 0}, `points="340.0,310.0 620.0,310.0"`},
		"a small step": {[]float64{1, 2}, []float64{1, 0.5}, `points="340.0,40.0 620.0,175.0"`},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "losses")
			r := &report{steps: c.steps, losses: c.losses}
			file, err := r.draw(folder, "clicks")
			require.NoError(t, err)
			if c.want == "" {
				assert.Empty(t, file)
				return
			}
			assert.Equal(t, filepath.Join(folder, "loss-clicks.svg"), file)
			picture, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Contains(t, string(picture), c.want)
			assert.NoError(t, xml.Unmarshal(picture, new(struct{ XMLName xml.Name })), "not XML")
		})
	}
}
