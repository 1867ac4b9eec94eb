package sandbox

import (
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
	}{
		{"steps", log, []string{"step 50 of 300, loss 0.6931", "step 100 of 300, loss 0.41"}},
		{"the result, after lines that were read", more, []string{"result: auc 0.865, trained batches 600"}},
		{"another attempt, after a long line", again, []string{"step 50 of 300, loss 0.3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines, err := r.lines(strings.NewReader(c.log))
			require.NoError(t, err)
			assert.Equal(t, c.want, lines)
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
