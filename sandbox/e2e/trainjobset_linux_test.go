package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTrainJobSet trains with the engine jobset on a real node, where JobSet's own program runs as
// a pod. Each interruption ends an attempt, and no replica holds the node when the job is complete.
func TestTrainJobSet(t *testing.T) {
	t.Parallel()
	r := newTraining(t)
	small := object{"replicas": 1}
	r.upWith(t, r.arrivingJob(t, "set", 3, object{
		"engine": "jobset", "nats": object{"size": 1},
		"dataloader": small, "embeddingWorker": small, "embeddingParameterServer": object{"replicas": 2},
	}))
	r.assertReal(t, 1, r.pods("jobset-system", "app.kubernetes.io/name=jobset-controller"))
	for i, interruption := range []struct {
		name      string
		interrupt func(*testing.T)
	}{
		{"an nn-worker's script", func(t *testing.T) { r.killProcess(t, "set-nn-worker-1", "-u /opt/training/train.py") }},
		{"an embedding parameter server's pod", func(t *testing.T) { r.deletePods(t, r.pod(t, "set-embedding-ps-1")) }},
		{"the nn-worker that coordinates", func(t *testing.T) { r.deletePods(t, r.pod(t, "set-nn-worker-0")) }},
	} {
		ok := t.Run(interruption.name, func(t *testing.T) {
			trained := (i + 1) * checkpointBatches
			r.volume.arrive(t, "set", trained+lostBatches, 0)
			last := r.awaitCheckpoint(t, "set", trained)
			interruption.interrupt(t)
			r.awaitResumed(t, "set", last)
		})
		if !ok {
			return
		}
	}
	r.volume.arrive(t, "set", allBatches, allBatches)
	r.assertTrained(t, "set", "1", allBatches)
	require.NoError(t, r.s.AwaitTrainings(t.Context()))
	r.assertEnded(t, "set")
}

// assertEnded checks that the servers of a complete job are gone, and that its other pods have
// succeeded, and hold no node.
func (r *training) assertEnded(t *testing.T, job string) {
	t.Helper()
	started := time.Now()
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
	fmt.Fprintf(t.Output(), "TIME %s: all pods have ended after %s more\n", t.Name(), time.Since(started).Round(time.Second))
	assert.Empty(t, r.pods("persia", "app.kubernetes.io/name in (embedding-ps,embedding-worker),persia_job="+job))
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
