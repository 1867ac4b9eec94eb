package persia

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/kube"
)

// completion is complete.sh at work, and the gateway that it asks.
type completion struct {
	t       *testing.T
	metrics atomic.Value
	process *exec.Cmd
	log     string
	ended   chan struct{}
}

// startCompletion runs complete.sh for two trainers, with a gateway that has metrics.
func startCompletion(t *testing.T, metrics string) *completion {
	t.Helper()
	_, err := exec.LookPath("wget")
	require.NoError(t, err, "complete.sh needs wget: apt install wget")
	c := &completion{t: t, log: filepath.Join(t.TempDir(), "log"), ended: make(chan struct{})}
	c.metrics.Store(metrics)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if metrics := c.metrics.Load().(string); metrics != "" && r.URL.Path == "/metrics" {
			fmt.Fprint(w, metrics)
		} else {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(gateway.Close)
	log, err := os.Create(c.log)
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	c.process = exec.Command("sh", "complete.sh")
	c.process.Stdout, c.process.Stderr = log, log
	c.process.Env = append(os.Environ(), "PERSIA_METRICS_GATEWAY_ADDR="+strings.TrimPrefix(gateway.URL, "http://"),
		"PERSIA_JOB=criteo", "PERSIA_RUN=1", "PERSIA_POLL_SECONDS=0.05", "no_proxy=127.0.0.1")
	require.NoError(t, c.process.Start())
	go func() {
		_ = c.process.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		_ = c.process.Process.Signal(syscall.SIGTERM)
		c.status()
	})
	return c
}

// status waits for the end, and returns the exit status.
func (c *completion) status() int {
	c.t.Helper()
	select {
	case <-c.ended:
		return c.process.ProcessState.ExitCode()
	case <-time.After(20 * time.Second):
		c.t.Fatal("complete.sh has not ended")
		return 0
	}
}

// says waits until complete.sh has said just these lines.
func (c *completion) says(lines ...string) {
	c.t.Helper()
	want := strings.Join(lines, "\n") + "\n"
	require.Eventually(c.t, func() bool {
		log, err := os.ReadFile(c.log)
		return err == nil && string(log) == want
	}, 20*time.Second, 10*time.Millisecond, "%q", want)
}

// reported is a metric as the Pushgateway shows it.
func reported(job, run, role, replica string) string {
	return fmt.Sprintf("persia_replica_finished{instance=\"\",job=%q,of=\"2\",replica=%q,role=%q,run=%q} 1\n", job, replica, role, run)
}

// others are metrics that say nothing about the trainers of the job.
var others = strings.Join([]string{
	"# TYPE persia_replica_finished gauge\n",
	reported("other", "1", "nn-worker", "0"),
	reported("other-criteo", "1", "nn-worker", "0"),
	reported("criteo", "2", "nn-worker", "0"),
	reported("criteo", "11", "nn-worker", "0"),
	reported("criteo", "1", "dataloader", "0"),
	reported("criteo", "1", "nn-worker", "2"),
	reported("criteo", "1", "nn-worker", "10"),
	strings.Replace(reported("criteo", "1", "nn-worker", "0"), " 1\n", " 0\n", 1),
	strings.Replace(reported("criteo", "1", "nn-worker", "0"), "finished", "finished_late", 1),
	"push_time_seconds{instance=\"\",job=\"criteo\",replica=\"0\",role=\"nn-worker\",run=\"1\"} 1.7e+09\n",
}, "")

// TestComplete: it ends when all trainers have finished, and tells of each change.
func TestComplete(t *testing.T) {
	first, second := reported("criteo", "1", "nn-worker", "0"), reported("criteo", "1", "nn-worker", "1")
	none, one, two := "no trainer has finished yet", "1 of 2 trainers have finished", "2 of 2 trainers have finished"
	c := startCompletion(t, others)
	c.says(none)
	c.metrics.Store(others + second)
	c.says(none, one)
	// The gateway was restarted, and the trainers report anew.
	c.metrics.Store(others)
	c.says(none, one, none)
	c.metrics.Store(others + first + first)
	c.says(none, one, none, one)
	c.metrics.Store(second + others + first)
	assert.Zero(t, c.status())
	c.says(none, one, none, one, two)
}

// TestCompleteAfterScaling: a job that has had another number of trainers is complete
// when those of one number all are.
func TestCompleteAfterScaling(t *testing.T) {
	of := func(trainers, replica string) string {
		return strings.Replace(reported("criteo", "1", "nn-worker", replica), `of="2"`, `of="`+trainers+`"`, 1)
	}
	before := of("12", "0") + of("12", "1") + of("12", "11")
	c := startCompletion(t, before)
	c.says("3 of 12 trainers have finished")
	c.metrics.Store(before + of("1", "0"))
	assert.Zero(t, c.status())
	c.says("3 of 12 trainers have finished", "1 of 1 trainers have finished")
}

// TestCompleteTwice: of trainers that have finished before, it is told at once.
func TestCompleteTwice(t *testing.T) {
	c := startCompletion(t, reported("criteo", "1", "nn-worker", "1")+
		`persia_replica_finished{run="1",role="nn-worker",replica="0",of="2",job="criteo"} 1`+"\n")
	assert.Zero(t, c.status(), "the labels in another order")
	c.says("2 of 2 trainers have finished")
}

func TestCompleteWithoutGateway(t *testing.T) {
	c := startCompletion(t, "")
	address := ""
	for _, entry := range c.process.Env {
		if name, value, _ := strings.Cut(entry, "="); name == "PERSIA_METRICS_GATEWAY_ADDR" {
			address = value
		}
	}
	c.says("the metrics gateway at " + address + " does not answer")
	c.metrics.Store(others)
	c.says("the metrics gateway at "+address+" does not answer", "no trainer has finished yet")
	stopped := time.Now()
	require.NoError(t, c.process.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 128+int(syscall.SIGTERM), c.status())
	assert.Less(t, time.Since(stopped), 5*time.Second)
}

// TestCompletionName: what cannot be changed in a Job makes another, and nothing else
// does.
func TestCompletionName(t *testing.T) {
	args := func(change func(*JobArgs)) JobArgs {
		args := JobArgs{
			Job:             config.Job{Name: "criteo", RunID: "1", NNWorker: config.NNWorker{Role: config.Role{Replicas: 8}}},
			Namespace:       NamespaceName,
			SystemPlacement: kube.Placement{NodeSelector: map[string]string{"pool": "system"}},
		}
		change(&args)
		return args
	}
	name := func(change func(*JobArgs)) string { return completionJob(args(change)).Name }
	same := name(func(*JobArgs) {})
	assert.Regexp(t, `^criteo-completion-[0-9a-f]{8}$`, same)
	for what, test := range map[string]struct {
		change  func(*JobArgs)
		another bool
	}{
		"nothing":                     {func(*JobArgs) {}, false},
		"a suspended job":             {func(a *JobArgs) { a.Job.Suspend = true }, false},
		"other data loaders":          {func(a *JobArgs) { a.Job.Dataloader.Replicas = 7 }, false},
		"another number of trainers":  {func(a *JobArgs) { a.Job.NNWorker.Replicas = 9 }, false},
		"another run":                 {func(a *JobArgs) { a.Job.RunID = "2" }, true},
		"another place":               {func(a *JobArgs) { a.SystemPlacement.NodeSelector = nil }, true},
		"another job of the same run": {func(a *JobArgs) { a.Job.Name = "other" }, true},
	} {
		t.Run(what, func(t *testing.T) { assert.Equal(t, test.another, name(test.change) != same) })
	}
	assert.Len(t, name(func(a *JobArgs) { a.Job.Name = strings.Repeat("j", 63) }), 63)
}

// TestCompletionJob: its pod has no rights, and Pulumi does not wait for it.
func TestCompletionJob(t *testing.T) {
	job := completionJob(JobArgs{
		Job:             config.Job{Name: "criteo", RunID: "1", NNWorker: config.NNWorker{Role: config.Role{Replicas: 8}}},
		Namespace:       NamespaceName,
		SystemPlacement: kube.Placement{NodeSelector: map[string]string{"pool": "system"}},
	})
	assert.Equal(t, "true", job.Annotations["pulumi.com/skipAwait"])
	assert.Nil(t, job.Spec.TTLSecondsAfterFinished, "a job that is complete is still seen")
	pod := job.Spec.Template.Spec
	for _, labels := range []map[string]string{job.Labels, job.Spec.Template.Labels} {
		assert.Equal(t, "criteo", labels[JobLabel])
		assert.Equal(t, "completion", labels["app.kubernetes.io/name"])
	}
	assert.Equal(t, corev1.RestartPolicyOnFailure, pod.RestartPolicy)
	assert.Equal(t, map[string]string{"pool": "system"}, pod.NodeSelector)
	assert.False(t, *pod.AutomountServiceAccountToken)
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	container := pod.Containers[0]
	assert.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, []string{"/bin/sh", "-c", completeScript}, container.Command)
	assert.Equal(t, []corev1.EnvVar{
		{Name: "PERSIA_METRICS_GATEWAY_ADDR", Value: "criteo-metrics-gateway-service:9091"},
		{Name: "PERSIA_JOB", Value: "criteo"}, {Name: "PERSIA_RUN", Value: "1"},
	}, container.Env)
	assert.Empty(t, pod.Volumes, "the script is its command: a changed one starts no training anew")
}
