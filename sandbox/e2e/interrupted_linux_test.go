package e2e

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/internal/answer"
	"persia/sandbox/process"
)

// failedAttempts is how often the job that cannot succeed may fail.
const failedAttempts = 5

// testInterrupted runs several jobs at the same time, and takes replicas and NATS servers away: of one, roles are
// killed, of another one its NATS servers, and the third can never succeed. Beside StatefulSets, PERSIA's operator
// makes the pods of a fourth, which nothing interrupts. None of the first two learns from the data of the other.
func (r *training) testInterrupted(t *testing.T) {
	small := object{"replicas": 1}
	killed := r.arrivingJob(t, "killed", 1, object{"nats": object{"size": 1}})
	deaf := r.arrivingJob(t, "deaf", 2, object{"nnWorker": small, "dataloader": small})
	fails := r.exampleJob(t)
	change(fails, object{
		"env": []object{
			{"name": "PERSIA_BACKOFF_SECONDS", "value": strconv.Itoa(backoffSeconds)},
			{"name": "PERSIA_ATTEMPTS", "value": strconv.Itoa(failedAttempts)},
		},
		"name": "fails", "persiaEnv": object{"PERSIA_NN_WORKER_ENTRY": r.volume.script(t, "fails.py")},
		"nnWorker": small, "dataloader": small, "embeddingWorker": small, "embeddingParameterServer": small,
		"nats": object{"size": 1},
	})
	jobs := []object{killed, deaf, fails}
	for _, job := range jobs {
		job["enableMetrics"] = true
	}
	if r.engine == config.EngineStatefulSet {
		// The pods of the example's job make room. It keeps its NATS.
		stopped := r.exampleJob(t)
		stopped["suspend"] = true
		jobs = append(jobs, stopped, r.operatorJob(t))
	}
	r.upWith(t, jobs...)
	alerts := r.watchAlerts(t, "killed", "deaf", "fails")
	t.Run("interruptions", func(t *testing.T) {
		// As parallel subtests, they would wait behind the tests that wait for a turn.
		var all sync.WaitGroup
		all.Go(func() { t.Run("roles are killed", func(t *testing.T) { r.testKilledRoles(t, "killed") }) })
		all.Go(func() { t.Run("NATS is away", r.testWithoutNATS) })
		if r.engine == config.EngineStatefulSet {
			all.Go(func() { t.Run("PERSIA's operator", r.testOperator) })
		}
		all.Wait()
	})
	if t.Failed() || !t.Run("a training that cannot succeed", r.testFails) {
		return
	}
	// Each replica of the others has ended an attempt at most once. They wait for data.
	maybe, want := []string{"PersiaNoProgress", "PersiaCheckpointOverdue"}, []string{"PersiaJobFailed fails"}
	if r.engine == config.EngineJobSet {
		maybe = append(maybe, "PersiaReplicaEndsAttempts fails nn-worker-0") // until the gateway ends with the job
	} else {
		want = append(want, "PersiaReplicaEndsAttempts fails nn-worker-0")
	}
	alerts.await(t, maybe, want...)
	t.Run("NATS is replaced, and a job stopped", func(t *testing.T) {
		change(killed, object{"nats": object{"resources": object{
			"requests": object{"cpu": "50m", "memory": "416Mi"}, "limits": object{"memory": "416Mi"},
		}}})
		change(deaf, object{"suspend": true})
		r.upWith(t, killed, deaf, fails)
		await(t, func() bool {
			return len(r.pods("persia", "persia_job=deaf,app.kubernetes.io/name notin (metrics-gateway,completion)")) == 0
		}, "a stopped job has no replicas")
	})
	last := r.volume.checkpoint("deaf", "1")
	t.Run("fewer embedding parameter servers go on", func(t *testing.T) {
		change(deaf, object{"suspend": false, "embeddingParameterServer": object{"replicas": 2}})
		r.upWith(t, killed, deaf, fails)
		r.awaitResumed(t, "deaf", last)
		assert.Len(t, r.pods("persia", "persia_job=deaf,app.kubernetes.io/name=embedding-ps"), 2)
	})
	if !t.Run("the stack is destroyed, and comes up again", func(t *testing.T) {
		require.NoError(t, r.s.Down(t.Context()))
		last := map[string]checkpoint{"killed": r.volume.checkpoint("killed", "1"), "deaf": r.volume.checkpoint("deaf", "1")}
		r.upWith(t, killed, deaf, fails)
		for job, last := range last {
			require.NotZero(t, last, "the checkpoint of %s outlives the stack", job)
			r.awaitResumed(t, job, last)
		}
	}) {
		return
	}
	for _, job := range []string{"killed", "deaf"} {
		r.volume.arrive(t, job, allBatches, allBatches)
	}
	for _, job := range []string{"killed", "deaf"} {
		r.assertTrained(t, job, "1", allBatches)
		if r.engine == config.EngineJobSet {
			r.assertEnded(t, job)
		}
	}
	assert.ErrorContains(t, r.s.AwaitTrainings(t.Context()), fmt.Sprintf("the training job fails has failed: %d attempts failed", failedAttempts))
}

// interruption takes a replica of a job away: it kills the process with a text in its command, or else deletes the pod.
type interruption struct{ name, pod, kill string }

func (i interruption) interrupt(t *testing.T, r *training, job string) {
	t.Helper()
	switch {
	case i.pod == "":
		r.deletePods(t, r.pods("persia", "persia_job="+job+",app.kubernetes.io/name notin (metrics-gateway,completion)")...)
	case i.kill == "gcsfuse":
		r.killBucket(t, r.pod(t, job+"-"+i.pod), job)
	case i.kill != "":
		r.killProcess(t, job+"-"+i.pod, i.kill)
	default:
		r.deletePods(t, r.pod(t, job+"-"+i.pod))
	}
}

// killedRoles are one replica of each role, and the replica that coordinates.
var killedRoles = []interruption{
	{"an nn-worker's script", "nn-worker-1", "-u /opt/training/train.py"},
	{"a dataloader's container", "dataloader-0", "/launch.py"},
	{"an embedding worker's pod", "embedding-worker-0", ""},
	{"an embedding parameter server", "embedding-ps-1", "/persia-embedding-parameter-server"},
	{"the nn-worker that coordinates", "nn-worker-0", ""},
}

// testKilledRoles kills replicas in the middle of the training. Each time all go on from the last checkpoint.
func (r *training) testKilledRoles(t *testing.T, job string) {
	for _, interruption := range killedRoles {
		ok := t.Run(interruption.name, func(t *testing.T) {
			last := r.trainOn(t, job)
			interruption.interrupt(t, r, job)
			r.awaitResumed(t, job, last)
		})
		if !ok {
			return
		}
	}
}

// trainOn has a job train until its next checkpoint, and some more batches, and returns the checkpoint.
func (r *training) trainOn(t *testing.T, job string) checkpoint {
	t.Helper()
	batches := r.volume.checkpoint(job, "1").batches + checkpointBatches
	r.volume.arrive(t, job, batches+lostBatches, 0)
	return r.awaitCheckpoint(t, job, batches)
}

// testWithoutNATS takes NATS servers away while batches come.
func (r *training) testWithoutNATS(t *testing.T) {
	const servers = "app=nats,nats_cluster=deaf-nats"
	r.volume.arrive(t, "deaf", checkpointBatches, allBatches/2)
	r.awaitCheckpoint(t, "deaf", checkpointBatches)
	ok := t.Run("one server", func(t *testing.T) {
		r.deletePods(t, r.pods("nats-io", servers)[0])
		r.awaitCheckpoint(t, "deaf", 3*checkpointBatches)
	})
	if !ok {
		return
	}
	t.Run("all servers", func(t *testing.T) {
		r.scaleOperator(t, 0)
		last := r.volume.checkpoint("deaf", "1")
		r.deletePods(t, r.pods("nats-io", servers)...)
		r.awaitStatus(t, "deaf", "NATS does not answer")
		r.scaleOperator(t, 1)
		r.awaitResumed(t, "deaf", last)
	})
}

// scaleOperator makes the NATS operator go, or come again.
func (r *training) scaleOperator(t *testing.T, replicas int32) {
	t.Helper()
	_, err := r.AppsV1().Deployments("nats-io").UpdateScale(t.Context(), "nats-operator", &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: "nats-io", Name: "nats-operator"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	}, metav1.UpdateOptions{})
	require.NoError(t, err)
	await(t, func() bool {
		return len(r.pods("nats-io", "app.kubernetes.io/name=nats-operator")) == int(replicas)
	}, "%d pods of the NATS operator", replicas)
}

// awaitStatus waits until the completion of a job has told something of it.
func (r *training) awaitStatus(t *testing.T, job, text string) {
	t.Helper()
	var last string
	r.awaitTraining(t, job, func() bool {
		for _, pod := range r.pods("persia", "app.kubernetes.io/name=completion,persia_job="+job) {
			lines := strings.Split(strings.TrimSpace(r.logs("persia", pod.Name)), "\n")
			document, _ := answer.Read(lines[len(lines)-1])
			last = document.String()
		}
		return strings.Contains(last, text)
	}, "%s: %q", job, text)
}

// testFails: after some attempts the job is shown as failed, and nothing runs any more.
func (r *training) testFails(t *testing.T) {
	assert.Equal(t, batchv1.JobFailed, r.await(t, "fails"))
	failed := fmt.Sprintf("failed: %d attempts failed without a new checkpoint, the last one because nn-worker 0", failedAttempts)
	r.awaitStatus(t, "fails", failed+": the command ended with status 1")
	var status bytes.Buffer
	require.NoError(t, r.s.Status(t.Context(), &status))
	assert.Contains(t, status.String(), "job fails: "+failed)
}

// testKept interrupts a job with each kind of recovery, and reports how long it takes until the next attempt has trained
// a batch. With partial recovery, the servers that nothing has killed go on as the same processes.
func (r *training) testKept(t *testing.T) {
	const servers = "/persia-embedding-parameter-server"
	for _, recovery := range []string{"partial", "full"} {
		job := "recovers-" + recovery
		r.upWith(t, r.arrivingJob(t, job, 5, object{"recovery": recovery, "nats": object{"size": 1}, "dataloader": object{"replicas": 1}}))
		for _, interruption := range killedRoles {
			before, last := map[string][]process.Process{}, r.trainOn(t, job)
			await(t, func() bool {
				states, _ := filepath.Glob(filepath.Join(string(r.volume), job, "1", "dense-*", "*", "opt.pt"))
				_, batches, _ := strings.Cut(filepath.Base(filepath.Dir(slices.Max(append(states, "")))), "-")
				number, _ := strconv.Atoi(batches)
				return recovery == "full" || number > last.batches
			}, "a dense state of %s after batch %d", job, last.batches)
			for _, pod := range r.pods("persia", "persia_job="+job+",app.kubernetes.io/name=embedding-ps") {
				before[pod.Name] = r.processes(t, pod.UID, servers)
			}
			began := time.Now()
			interruption.interrupt(t, r, job)
			r.volume.arrive(t, job, last.batches+checkpointBatches-1, 0)
			var said string
			r.awaitTraining(t, job, func() bool {
				log := r.logs("persia", job+"-nn-worker-0")
				for _, at := range attemptStarts.FindAllStringSubmatchIndex(log, -1) {
					if number, _ := strconv.Atoi(log[at[2]:at[3]]); number > last.attempt && strings.Contains(log[at[1]:], "step 1 of ") {
						said = log[at[4]:at[5]]
					}
				}
				return said != ""
			}, "a batch of %s after %s: %s", job, interruption.name, &words{r, "persia", job + "-nn-worker-0"})
			report(t, "%s recovery without %s: a batch after %.1f s, from %s", recovery, interruption.name, time.Since(began).Seconds(), said)
			for _, pod := range r.pods("persia", "persia_job="+job+",app.kubernetes.io/name=embedding-ps") {
				same := slices.Equal(before[pod.Name], r.processes(t, pod.UID, servers))
				assert.Equal(t, recovery == "partial" && pod.Name != r.nameOf("persia", job+"-"+interruption.pod), same, "%s goes on", pod.Name)
			}
		}
	}
}
