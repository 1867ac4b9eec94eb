package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
)

// TestTrainJobSet trains with the engine jobset on a real node, where JobSet's own program runs
// as a pod. Each interruption ends an attempt, and nothing holds the node when the job is complete.
func TestTrainJobSet(t *testing.T) {
	nightly(t)
	t.Parallel()
	r := newTraining(t, config.EngineJobSet)
	small := object{"replicas": 1}
	r.upWith(t, r.arrivingJob(t, "set", 3, object{
		"nats": object{"size": 1}, "enableMetrics": true,
		"dataloader": small, "embeddingWorker": small, "embeddingParameterServer": object{"replicas": 2},
	}))
	r.volume.arrive(t, "set", allBatches, allBatches)
	r.assertTrained(t, "set", "1", allBatches)
	require.NoError(t, r.s.AwaitTrainings(t.Context()))
	r.assertEnded(t, "set")
	t.Run("interrupted", r.testInterrupted)
}

// assertEnded checks that no pod of a complete job runs, but for the completion's, which ends too,
// and that its servers and its gateway are gone.
func (r *training) assertEnded(t *testing.T, job string) {
	t.Helper()
	var left []string
	await(t, func() bool {
		left = nil
		for _, pod := range r.pods("persia", "persia_job="+job) {
			if pod.Status.Phase != corev1.PodSucceeded {
				left = append(left, fmt.Sprintf("%s: %s", pod.Name, pod.Status.Phase))
			}
		}
		return len(left) == 0
	}, "pods of a complete job: %v", &left)
	assert.Empty(t, r.pods("persia", "app.kubernetes.io/name in (embedding-ps,embedding-worker,metrics-gateway),persia_job="+job))
	var text bytes.Buffer
	require.NoError(t, r.s.Status(t.Context(), &text))
	assert.Contains(t, text.String(), "job "+job+": complete")
}

// nameOf returns the name of the pod of a replica, JOB-ROLE-INDEX, whichever engine creates it: a
// JobSet's pod has a random end, and a substitute has another one.
func (r *training) nameOf(namespace, replica string) string {
	dash := strings.LastIndex(replica, "-")
	pods, err := r.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{LabelSelector: "jobset.sigs.k8s.io/jobset-name"})
	if err != nil || dash < 0 {
		return replica
	}
	for _, pod := range pods.Items {
		if pod.Spec.Hostname == replica[:dash]+"-0"+replica[dash:] && pod.DeletionTimestamp == nil {
			return pod.Name
		}
	}
	return replica
}
