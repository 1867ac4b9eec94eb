package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

const ofNNWorkers = "app.kubernetes.io/name=nn-worker"

// TestCompletion sees a training to its end: its two nn-workers, on nodes that come for
// them, run the real scripts. One of them coordinates, and both push to a real
// Pushgateway.
func TestCompletion(t *testing.T) {
	t.Parallel()
	started := time.Now()
	project, dir := t.TempDir(), t.TempDir()
	writeStack(t, project, trainedStack(object{}))
	s := newSandboxOf(t, project, dir, "madeup")
	up := func(changed object) {
		t.Helper()
		writeStack(t, project, trainedStack(changed))
		err := s.Apply(t.Context())
		require.NoError(t, err)
	}
	up(object{})
	c := newCluster(t, s)
	nnWorkers := c.pods("persia", ofNNWorkers)
	c.assertOn("nn-workers", 2, nnWorkers)
	job := c.completion()
	assert.Empty(t, upChanges(t, s))
	assert.Empty(t, refreshChanges(t, s), "what the API server adds to a Job is no drift")

	t.Run("its pod is evicted", func(t *testing.T) { c.assertReplaced(t, job) })

	around := trainingSurroundings{
		cluster: c,
		gateway: startPushgateway(t), coordinator: fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0]),
		volume: t.TempDir(), finish: filepath.Join(t.TempDir(), "finish"),
	}
	complete := around.start(c.podOf(job))
	complete.says("does not answer")
	first := around.start(nnWorkers[0])
	complete.says("waiting after attempt 0 (the job starts): nn-worker 1 is not there")
	second := around.start(nnWorkers[1])
	complete.says("running attempt 1: 0 of 2 nn-workers and")
	assert.False(t, complete.hasEnded())
	require.NoError(t, os.WriteFile(around.finish, nil, 0o600))
	for _, nnWorker := range []*localProcess{first, second} {
		nnWorker.says("the job is complete: idle")
	}
	assert.Zero(t, complete.status())
	complete.says("complete in attempt 1")
	c.await(func() bool { return strings.Count(around.metrics(), "persia_replica_finished{") == 2 }, "both nn-workers push that they have finished")

	assert.False(t, isComplete(c.completion()), "its pod runs until the kubelet says how it has ended")
	c.succeed(c.podOf(job))
	c.await(func() bool { return isComplete(c.completion()) }, "the Job is complete")

	t.Run("stopped", func(t *testing.T) {
		up(object{"suspend": true})
		assert.Empty(t, c.pods("persia", "persia_job=long,app.kubernetes.io/name notin (metrics-gateway,completion)"))
		for _, nnWorker := range []*localProcess{first, second} {
			require.NoError(t, nnWorker.cmd.Process.Signal(syscall.SIGTERM), "as the kubelet sends when a pod goes")
			assert.Zero(t, nnWorker.status())
		}
		c.await(func() bool { return len(c.nodesOf("nn-workers")) == 0 }, "no nodes for nn-workers")
		assert.Equal(t, job.Name, c.completion().Name)
		assert.True(t, isComplete(c.completion()))
	})
	t.Run("another run", func(t *testing.T) {
		pod := c.podOf(job)
		up(object{"suspend": true, "runId": "second"})
		assert.NotEqual(t, job.Name, c.completion().Name, "it alone is left")
		assert.False(t, isComplete(c.completion()))
		assert.NotContains(t, names(c.pods("persia", "app.kubernetes.io/name=completion")), pod.Name)
	})
	fmt.Fprintf(t.Output(), "TIME a training up, complete and stopped: %s\n", time.Since(started).Round(time.Second))
}

// trainedStack has nn-workers on a pool of their own, which may have no nodes.
func trainedStack(changed object) madeUp {
	long := job("long", object{
		"enableMetrics": true,
		"nnWorker":      gpuRole("nn-workers", 2, "2", "4Gi", 1),
	})
	for key, value := range changed {
		long[key] = value
	}
	return madeUp{
		name: "a training", pool: "nn-workers", jobs: []object{long},
		pools: []object{{"name": "nn-workers", "machineType": "g2-standard-4",
			"autoscaling": object{"minNodes": 0, "maxNodes": 2}, "gpu": object{"type": "nvidia-l4", "count": 1}}},
	}
}

// completion returns the Job of the training.
func (c cluster) completion() batchv1.Job {
	c.t.Helper()
	list, err := c.BatchV1().Jobs("persia").List(c.t.Context(), metav1.ListOptions{LabelSelector: "persia_job=long"})
	require.NoError(c.t, err)
	require.Len(c.t, list.Items, 1)
	return list.Items[0]
}

func isComplete(job batchv1.Job) bool {
	for _, condition := range job.Status.Conditions {
		if condition.Type == batchv1.JobComplete {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// podOf waits for the pod of a Job, which runs or has run.
func (c cluster) podOf(job batchv1.Job) corev1.Pod {
	c.t.Helper()
	var pods []corev1.Pod
	c.await(func() bool {
		pods = c.pods("persia", batchv1.JobNameLabel+"="+job.Name)
		return len(pods) == 1 && pods[0].Status.Phase != corev1.PodPending
	}, "a pod of "+job.Name)
	return pods[0]
}

// assertReplaced evicts the pod of a Job, as a drain does: another one comes, once the
// kubelet has said how the old one has ended, and the old one goes.
func (c cluster) assertReplaced(t *testing.T, job batchv1.Job) {
	t.Helper()
	c.t = t
	old := c.podOf(job)
	require.NoError(t, c.CoreV1().Pods(old.Namespace).EvictV1(t.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, Name: old.Name},
	}))
	var pods []corev1.Pod
	why, replaced := eventuallyUnless(t, patience, nothingLost, func() bool {
		pods = c.pods(old.Namespace, batchv1.JobNameLabel+"="+job.Name)
		return len(pods) == 1 && pods[0].UID != old.UID && pods[0].Status.Phase == corev1.PodRunning
	})
	assert.True(t, replaced, "there is another pod than %s, and no other: %v: %s", old.Name, names(pods), why)
	assert.False(t, isComplete(c.completion()))
}

// succeed ends a pod that runs, with success.
func (c cluster) succeed(pod corev1.Pod) {
	c.t.Helper()
	assert.Equal(c.t, corev1.PodRunning, pod.Status.Phase)
	require.NoError(c.t, endPod(c.t.Context(), c, pod, corev1.PodSucceeded, 0))
}

// endPod sets the status of a pod as the kubelet does when its containers have ended.
func endPod(ctx context.Context, client kubernetes.Interface, pod corev1.Pod, phase corev1.PodPhase, exitCode int32) error {
	pods := client.CoreV1().Pods(pod.Namespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		running, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		running.Status.Phase = phase
		for i := range running.Status.ContainerStatuses {
			running.Status.ContainerStatuses[i].State = corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, FinishedAt: metav1.Now()},
			}
		}
		_, err = pods.UpdateStatus(ctx, running, metav1.UpdateOptions{})
		return err
	})
}

// startPushgateway runs a real Pushgateway until the test ends, and returns where.
func startPushgateway(t *testing.T) string {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0])
	gateway := startProcess(t, exec.Command(tools.Pushgateway, "--web.listen-address="+address))
	awaitWhile(t, gateway.ended, func() bool {
		answer, err := http.Get("http://" + address + "/-/ready")
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}, "the Pushgateway is ready")
	return address
}

// trainingSurroundings are the servers and folders that the replicas of a training use here.
type trainingSurroundings struct {
	cluster
	gateway, coordinator, volume string
	// finish is a file that lets the nn-workers finish.
	finish string
}

// metrics returns the page of the Pushgateway.
func (s trainingSurroundings) metrics() string {
	s.t.Helper()
	answer, err := http.Get("http://" + s.gateway + "/metrics")
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return string(text)
}

// start runs the container of a pod as a local process, with its own command and
// environment and the files of its ConfigMaps. What surrounds it is here, the job has
// no other roles, and instead of a training there is a program that waits for a file.
func (s trainingSurroundings) start(pod corev1.Pod) *localProcess {
	s.t.Helper()
	dir := s.t.TempDir()
	container := pod.Spec.Containers[0]
	s.writeConfigMaps(dir, pod)
	require.NoError(s.t, os.MkdirAll(filepath.Join(dir, "bin"), 0o700))
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, "bin", "persia-launcher"), fmt.Appendf(nil, "#!/bin/sh\nuntil [ -e %s ]; do sleep 0.1; done\n", s.finish), 0o700))

	values := environmentOf(s.t, pod)
	expand := expansion(values)
	var words []string
	for _, word := range append(container.Command, container.Args...) {
		words = append(words, strings.ReplaceAll(expand.Replace(word), "/opt/persia/", dir+"/opt/persia/"))
	}
	assert.Equal(s.t, "long-nn-worker-0.long-nn-worker.persia.svc:8886", values["PERSIA_COORDINATOR"])
	values["PERSIA_COORDINATOR"] = s.coordinator
	values["PERSIA_METRICS_GATEWAY_ADDR"] = s.gateway
	values["PERSIA_REPLICAS"] = "nn-worker=2,dataloader=0"
	values["PERSIA_STATE_DIR"] = filepath.Join(s.volume, "state")
	values["PERSIA_IDLE_FILE"] = filepath.Join(dir, "idle")
	// This machine has neither the image nor a GPU nor NATS.
	for _, name := range []string{"PERSIA_GLOBAL_CONFIG", "PERSIA_EMBEDDING_CONFIG", "PERSIA_NN_WORKER_ENTRY", "PERSIA_GPUS", "PERSIA_NATS_URL", "PERSIA_CKPT_ROOT"} {
		delete(values, name)
	}
	values["PERSIA_BEAT_SECONDS"], values["PERSIA_REPORT_SECONDS"] = "0.1", "0.1"
	values["PERSIA_POLL_SECONDS"] = "0.1"
	values["PATH"] = filepath.Join(dir, "bin") + string(os.PathListSeparator) + os.Getenv("PATH")
	command := exec.Command(words[0], words[1:]...)
	for name, value := range values {
		command.Env = append(command.Env, name+"="+value)
	}
	return startProcess(s.t, command)
}

// writeConfigMaps writes the ConfigMaps that a pod mounts below dir, as if it were
// the container's root.
func (s trainingSurroundings) writeConfigMaps(dir string, pod corev1.Pod) {
	s.t.Helper()
	for _, volume := range pod.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		content, err := s.CoreV1().ConfigMaps(pod.Namespace).Get(s.t.Context(), volume.ConfigMap.Name, metav1.GetOptions{})
		require.NoError(s.t, err)
		for _, mount := range pod.Spec.Containers[0].VolumeMounts {
			if mount.Name != volume.Name {
				continue
			}
			require.NoError(s.t, os.MkdirAll(filepath.Join(dir, mount.MountPath), 0o700))
			for name, text := range content.Data {
				require.NoError(s.t, os.WriteFile(filepath.Join(dir, mount.MountPath, name), []byte(text), 0o600))
			}
		}
	}
}

// environmentOf returns the environment of a pod's container, as the kubelet makes it:
// $(NAME) is the value of a variable further up.
func environmentOf(t *testing.T, pod corev1.Pod) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, entry := range pod.Spec.Containers[0].Env {
		if entry.ValueFrom == nil {
			values[entry.Name] = expansion(values).Replace(entry.Value)
			continue
		}
		if entry.ValueFrom.FieldRef.FieldPath == "metadata.uid" {
			values[entry.Name] = string(pod.UID)
			continue
		}
		label, found := strings.CutPrefix(entry.ValueFrom.FieldRef.FieldPath, "metadata.labels['")
		require.True(t, found, entry.Name)
		values[entry.Name] = pod.Labels[strings.TrimSuffix(label, "']")]
	}
	return values
}

func expansion(values map[string]string) *strings.Replacer {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "$("+name+")", value)
	}
	return strings.NewReplacer(pairs...)
}

// localProcess is a process of this machine and its output.
type localProcess struct {
	t     *testing.T
	log   string
	cmd   *exec.Cmd
	ended chan struct{}
}

// startProcess starts a process, which is asked to end when the test ends.
func startProcess(t *testing.T, command *exec.Cmd) *localProcess {
	t.Helper()
	p := &localProcess{t: t, log: filepath.Join(t.TempDir(), "log"), cmd: command, ended: make(chan struct{})}
	log, err := os.Create(p.log)
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	command.Stdout, command.Stderr = log, log
	require.NoError(t, command.Start())
	go func() {
		_ = command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		p.status()
		if t.Failed() {
			logFiles(t, p.log)
		}
	})
	return p
}

func (p *localProcess) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// status waits for the end, and returns the exit status.
func (p *localProcess) status() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		p.t.Errorf("%s does not end", p.cmd.Path)
		<-p.ended
	}
	return p.cmd.ProcessState.ExitCode()
}

// says waits until the process has said something.
func (p *localProcess) says(text string) {
	p.t.Helper()
	awaitWhile(p.t, p.ended, func() bool {
		log, err := os.ReadFile(p.log)
		return err == nil && strings.Contains(string(log), text)
	}, "%s says %q", p.cmd.Path, text)
}
