package operator

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/internal/testkit"
	"persia/workload/persia"
)

// pod is a pod as a test writes it: the phase, when its container started or ended, how
// often it was restarted, and how long ago it was created.
type pod struct {
	phase        corev1.PodPhase
	start, end   string
	restartCount int
	age          time.Duration
}

var (
	running   = pod{phase: corev1.PodRunning, start: "2026-01-01T00:00:00Z"}
	succeeded = pod{phase: corev1.PodSucceeded, end: "2026-01-01T01:00:00Z"}
	failed    = pod{phase: corev1.PodFailed, end: "2026-01-01T00:30:00Z"}
)

// podsWith returns the running pods of a job with two nn-workers and one replica of each other
// role, by the ends of their names, with changes.
func podsWith(changes map[string]pod) map[string]pod {
	all := map[string]pod{"nn-worker-0": running, "nn-worker-1": running, "dataloader-0": running, "embedding-worker-0": running, "embedding-ps-0": running}
	for name, change := range changes {
		if all[name] = change; change == (pod{}) {
			delete(all, name)
		}
	}
	return all
}

// list is the API server's answer.
func list(pods map[string]pod) []byte {
	items := []any{}
	for name, p := range pods {
		state := map[string]any{}
		if p.start != "" {
			state["running"] = map[string]any{"startedAt": p.start}
		}
		if p.end != "" {
			state["terminated"] = map[string]any{"finishedAt": p.end, "reason": "Error", "exitCode": 9}
		}
		items = append(items, map[string]any{
			"metadata": metav1.ObjectMeta{Name: "clicks-" + name, CreationTimestamp: metav1.NewTime(time.Now().Add(-p.age))},
			"status": map[string]any{"phase": p.phase, "containerStatuses": []any{
				map[string]any{"state": state, "restartCount": p.restartCount},
			}},
		})
	}
	text, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		panic(err)
	}
	return text
}

// allEnded is when nn-workers and dataloaders have.
var allEnded = map[string]pod{"nn-worker-0": succeeded, "nn-worker-1": succeeded, "dataloader-0": succeeded}

func and(changes map[string]pod, name string, p pod) map[string]pod {
	all := map[string]pod{name: p}
	for name, change := range changes {
		all[name] = change
	}
	return all
}

// TestComplete: a job is complete only if it was trained to the end.
func TestComplete(t *testing.T) {
	t.Parallel()
	const runs = "running: 0 of 2 nn-workers and 0 of 1 dataloaders have finished"
	server := "clicks-embedding-ps-0"
	old := running
	old.age = 3 * time.Minute
	for name, test := range map[string]struct {
		looks  []map[string]pod
		says   []string
		status int
	}{
		"a training": {
			[]map[string]pod{{}, podsWith(map[string]pod{"nn-worker-1": {}}), podsWith(nil), podsWith(map[string]pod{"dataloader-0": succeeded}), podsWith(allEnded)},
			[]string{"waiting: clicks-dataloader-0 and 4 more are not there", "waiting: clicks-nn-worker-1 is not there", runs,
				"running: 0 of 2 nn-workers and 1 of 1 dataloaders have finished", "complete"}, 0},
		"a pod that has finished and is gone": {
			[]map[string]pod{podsWith(map[string]pod{"dataloader-0": succeeded}), podsWith(map[string]pod{"dataloader-0": {}, "nn-worker-0": succeeded, "nn-worker-1": succeeded})},
			[]string{"running: 0 of 2 nn-workers and 1 of 1 dataloaders have finished", "complete"}, 0},
		"an nn-worker that fails": {
			[]map[string]pod{podsWith(nil), podsWith(map[string]pod{"nn-worker-1": failed})},
			[]string{runs, "failed: clicks-nn-worker-1 failed: Error, status 9"}, persia.FailedStatus},
		"a dataloader that fails": {
			[]map[string]pod{podsWith(map[string]pod{"dataloader-0": failed})},
			[]string{"failed: clicks-dataloader-0 failed: Error, status 9"}, persia.FailedStatus},
		"an nn-worker that is gone": {
			[]map[string]pod{podsWith(nil), podsWith(map[string]pod{"nn-worker-1": {}})},
			[]string{runs, "failed: clicks-nn-worker-1 is gone"}, persia.FailedStatus},
		"a server that is gone": {
			[]map[string]pod{podsWith(nil), podsWith(map[string]pod{"embedding-ps-0": {}})},
			[]string{runs, "failed: " + server + " is gone"}, persia.FailedStatus},
		"an nn-worker that was gone before anybody looked": {
			[]map[string]pod{podsWith(map[string]pod{"nn-worker-1": {}, "dataloader-0": old})},
			[]string{"failed: clicks-nn-worker-1 is gone, and was not seen to finish"}, persia.FailedStatus},
		"a server that was gone before anybody looked": {
			[]map[string]pod{podsWith(map[string]pod{"embedding-ps-0": {}, "dataloader-0": old})},
			[]string{"failed: " + server + " is gone"}, persia.FailedStatus},
		"servers that go after the training": {
			[]map[string]pod{podsWith(and(and(allEnded, "embedding-ps-0", pod{}), "embedding-worker-0", old))},
			[]string{"complete"}, 0},
		"a server that fails before the nn-workers end": {
			[]map[string]pod{podsWith(and(allEnded, "embedding-ps-0", failed))},
			[]string{"failed: " + server + " ended before the nn-workers: Error, status 9"}, persia.FailedStatus},
		"a server that ends after the training": {
			[]map[string]pod{podsWith(and(allEnded, "embedding-ps-0", pod{phase: corev1.PodFailed, end: "2026-01-01T02:00:00Z"}))},
			[]string{"complete"}, 0},
		"a server that starts again in the training": {
			[]map[string]pod{podsWith(map[string]pod{"embedding-ps-0": {phase: corev1.PodRunning, start: "2026-01-01T00:10:00Z", restartCount: 1}})},
			[]string{"failed: " + server + " was restarted after the nn-workers had started, and knows nothing of the training"}, persia.FailedStatus},
		"a server that starts again before the training": {
			[]map[string]pod{podsWith(map[string]pod{"embedding-ps-0": {phase: corev1.PodRunning, start: "2025-12-31T23:59:00Z", restartCount: 1}}), podsWith(allEnded)},
			[]string{runs, "complete"}, 0},
		"nn-workers that give up": {
			[]map[string]pod{podsWith(map[string]pod{"nn-worker-0": succeeded, "nn-worker-1": succeeded})},
			[]string{"running: 2 of 2 nn-workers and 0 of 1 dataloaders have finished", "failed: the nn-workers ended before the dataloaders had sent all data"}, persia.FailedStatus},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var looked atomic.Int32
			api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "/api/v1/namespaces/persia/pods?labelSelector=persia_job%3Dclicks", r.URL.String())
				assert.Equal(t, "Bearer token", r.Header.Get("Authorization"))
				_, _ = w.Write(list(test.looks[min(int(looked.Add(1)), len(test.looks))-1]))
			}))
			t.Cleanup(api.Close)
			said, err := complete(t, api).Output()
			assert.Equal(t, strings.Join(test.says, "\n")+"\n", string(said))
			if test.status == 0 {
				assert.NoError(t, err)
				return
			}
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			assert.Equal(t, test.status, exit.ExitCode())
		})
	}
}

// complete returns the script with an account at an API server.
func complete(t *testing.T, api *httptest.Server) *exec.Cmd {
	t.Helper()
	testkit.Processes(t)
	account := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	for name, text := range map[string][]byte{"token": []byte("token\n"), "ca.crt": authority} {
		require.NoError(t, os.WriteFile(filepath.Join(account, name), text, 0o600))
	}
	at, err := url.Parse(api.URL)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	process := exec.CommandContext(ctx, "python3", "-c", completeScript)
	process.Env = []string{
		"PATH=" + os.Getenv("PATH"), "PERSIA_ACCOUNT_DIR=" + account, "PERSIA_POLL_SECONDS=0.02", "PERSIA_END_SECONDS=0.2",
		"KUBERNETES_SERVICE_HOST=" + at.Hostname(), "KUBERNETES_SERVICE_PORT=" + at.Port(),
		"PERSIA_NAMESPACE=persia", "PERSIA_JOB=clicks", "PERSIA_REPLICAS=dataloader=1,embedding-worker=1,embedding-ps=1,nn-worker=2",
	}
	return process
}

// TestCompleteAsksAgain while there is no answer.
func TestCompleteAsksAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusForbidden)
		case 2:
			_, _ = w.Write([]byte("no JSON"))
		case 3:
			// The end of this answer never comes.
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("ten bytes."))
		default:
			_, _ = w.Write(list(podsWith(allEnded)))
		}
	}))
	t.Cleanup(api.Close)
	said, err := complete(t, api).Output()
	require.NoError(t, err)
	assert.Contains(t, string(said), "the API server does not answer: HTTP Error 403")
	assert.Contains(t, string(said), "the API server does not answer: IncompleteRead(10 bytes read, 90 more expected)")
	assert.True(t, strings.HasSuffix(string(said), "\ncomplete\n"), "%s", said)
}

// TestCompletion checks that the operator and the guard do not count its pod, and that the pod has
// one right.
func TestCompletion(t *testing.T) {
	args := JobArgs{Job: config.Job{Name: "clicks"}, Namespace: "persia", Image: "registry.example.com/persia@sha256:0"}
	pod := completionPod(args)
	assert.Equal(t, "clicks-completion", pod.ServiceAccountName)
	assert.True(t, *pod.AutomountServiceAccountToken)
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	assert.Equal(t, args.Image, pod.Containers[0].Image)
	assert.True(t, *pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem)
	assert.NotContains(t, persia.CompletionLabels("clicks"), persia.JobLabel)
	var rules []rbacv1.PolicyRule
	for _, object := range completionRights(args) {
		if role, ok := object.(*rbacv1.Role); ok {
			rules = append(rules, role.Rules...)
		}
	}
	assert.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}}, rules)
}
