package persia

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"persia/config/jobspec"
	"persia/kube"
)

// TestComplete: it tells of each change, and ends as the job does.
func TestComplete(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("wget")
	require.NoError(t, err, "complete.sh needs wget: apt install wget")
	const away = "the coordinator at ADDRESS does not answer"
	for name, test := range map[string]struct {
		answers []string
		says    []string
		status  int
	}{
		"a job that completes": {
			[]string{"", "waiting after attempt 0", "running attempt 1", "running attempt 1", "", "running attempt 1", "complete in attempt 1"},
			[]string{away, "waiting after attempt 0", "running attempt 1", away, "running attempt 1", "complete in attempt 1"}, 0},
		"a job that fails": {
			[]string{"running attempt 5", "failed: 5 attempts failed"}, []string{"running attempt 5", "failed: 5 attempts failed"}, FailedStatus},
		"a pod that is moved": {[]string{"running attempt 1"}, []string{"running attempt 1"}, 128 + int(syscall.SIGTERM)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			coordinator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				at := int(asked.Add(1)) - 1
				if answer := test.answers[min(at, len(test.answers)-1)]; answer != "" && r.URL.String() == "/status?run=7" {
					_, _ = w.Write([]byte(answer + "\n"))
				} else {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			t.Cleanup(coordinator.Close)
			address := strings.TrimPrefix(coordinator.URL, "http://")
			process := exec.Command("sh", "complete.sh")
			var said strings.Builder
			process.Stdout = &said
			process.Env = append(os.Environ(), "PERSIA_COORDINATOR="+address, "PERSIA_RUN=7", "PERSIA_POLL_SECONDS=0.05", "no_proxy=127.0.0.1")
			require.NoError(t, process.Start())
			if test.status == 128+int(syscall.SIGTERM) {
				require.Eventually(t, func() bool { return asked.Load() > 1 }, patience, 10*time.Millisecond)
				require.NoError(t, process.Process.Signal(syscall.SIGTERM))
			}
			_ = process.Wait()
			assert.Equal(t, test.status, process.ProcessState.ExitCode())
			want := strings.ReplaceAll(strings.Join(test.says, "\n")+"\n", "ADDRESS", address)
			assert.Equal(t, want, said.String())
		})
	}
}

// completionArgs returns the arguments of a job without volumes.
func completionArgs() JobArgs {
	return JobArgs{
		Job:             jobspec.Job{Name: "criteo", RunID: "1", NNWorker: jobspec.NNWorker{Role: jobspec.Role{Replicas: 8}}},
		Namespace:       NamespaceName,
		SystemPlacement: kube.Placement{NodeSelector: map[string]string{"pool": "system"}},
		Placement:       func(string) kube.Placement { return kube.Placement{} },
		Claims:          func([]jobspec.Mount) []Claim { return nil },
	}
}

// TestCompletionName: what cannot be changed in a Job makes another, and nothing else
// does.
func TestCompletionName(t *testing.T) {
	args := func(change func(*JobArgs)) JobArgs {
		args := completionArgs()
		change(&args)
		return args
	}
	name := func(change func(*JobArgs)) string { return completionJob(completion(args(change))).Name }
	same := name(func(*JobArgs) {})
	assert.Regexp(t, `^criteo-completion-[0-9a-f]{8}$`, same)
	for what, test := range map[string]struct {
		change  func(*JobArgs)
		another bool
	}{
		"nothing":                     {func(*JobArgs) {}, false},
		"a suspended job":             {func(a *JobArgs) { a.Job.Suspend = true }, false},
		"other data loaders":          {func(a *JobArgs) { a.Job.Dataloader.Replicas = 7 }, true},
		"another number of trainers":  {func(a *JobArgs) { a.Job.NNWorker.Replicas = 9 }, true},
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
	job := completionJob(completion(completionArgs()))
	assert.Equal(t, "true", job.Annotations["pulumi.com/skipAwait"])
	assert.Nil(t, job.Spec.TTLSecondsAfterFinished, "a job that is complete is still seen")
	pod := job.Spec.Template.Spec
	for _, labels := range []map[string]string{job.Labels, job.Spec.Template.Labels} {
		assert.Equal(t, "criteo", labels[JobLabel])
		assert.Equal(t, "completion", labels["app.kubernetes.io/name"])
	}
	assert.Equal(t, corev1.RestartPolicyNever, pod.RestartPolicy)
	rule := job.Spec.PodFailurePolicy.Rules[0]
	assert.Equal(t, batchv1.PodFailurePolicyActionFailJob, rule.Action)
	assert.Equal(t, []int32{FailedStatus}, rule.OnExitCodes.Values, "any other end of its pod is no end of the job")
	assert.Equal(t, map[string]string{"pool": "system"}, pod.NodeSelector)
	assert.False(t, *pod.AutomountServiceAccountToken)
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	container := pod.Containers[0]
	assert.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, []string{"/bin/sh", "-c", completeScript}, container.Command)
	assert.Equal(t, []corev1.EnvVar{
		{Name: "PERSIA_COORDINATOR", Value: "criteo-nn-worker-0.criteo-nn-worker." + NamespaceName + ".svc:8886"},
		{Name: "PERSIA_RUN", Value: "1"},
	}, container.Env)
	assert.Empty(t, pod.Volumes, "the script is its command: a changed one starts no training anew")
}
