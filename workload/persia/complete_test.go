package persia

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"persia/capacity"
	"persia/config"
	"persia/internal/testkit"
	"persia/kube"
)

// TestComplete checks that the completion logs each change, and ends as the job does.
func TestComplete(t *testing.T) {
	testkit.Processes(t)
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
				if answer := test.answers[min(at, len(test.answers)-1)]; answer != "" && r.URL.String() == "/status?run=7" && r.Header.Get("Authorization") == "Bearer "+token {
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
			process.Env = append(os.Environ(), "PERSIA_COORDINATOR="+address, "PERSIA_RUN=7", "PERSIA_TOKEN="+token, "PERSIA_POLL_SECONDS=0.05", "no_proxy=127.0.0.1")
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

// TestServe: the metrics gateway runs for as long as the job, starts again when it ends
// early, and leaves nothing behind, however the pod ends.
func TestServe(t *testing.T) {
	testkit.Processes(t)
	t.Parallel()
	for name, test := range map[string]struct {
		end    string
		moved  bool
		status int
	}{
		"a job that completes":              {"complete in attempt 1", false, 0},
		"a job that fails":                  {"failed: 5 attempts failed", false, FailedStatus},
		"a pod that is moved":               {"", true, 128 + int(syscall.SIGTERM)},
		"a pod that is moved after the end": {"failed: 5 attempts failed", true, FailedStatus},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var end atomic.Bool
			coordinator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				answer := "running attempt 1"
				if end.Load() {
					answer = test.end
				}
				_, _ = w.Write([]byte(answer + "\n"))
			}))
			t.Cleanup(coordinator.Close)
			dir := t.TempDir()
			started := filepath.Join(dir, "started")
			// The first one ends at once.
			require.NoError(t, os.WriteFile(filepath.Join(dir, "pushgateway"), []byte(`#!/bin/sh
				echo "$$ $*" >>`+started+`
				[ "$(wc -l <`+started+`)" -gt 1 ] || exit 2
				exec /bin/sleep 600
			`), 0o755))
			ended := filepath.Join(dir, "ended")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "sleep"), []byte("#!/bin/sh\n[ $1 != 600 ] || touch "+ended+"\nexec /bin/sleep $1\n"), 0o755))
			lastScrape := "0.05"
			if test.moved {
				lastScrape = "600"
			}
			process := exec.Command("sh", "-c", serveScript, "serve.sh", completeScript)
			var said strings.Builder
			process.Stdout = &said
			process.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "no_proxy=127.0.0.1",
				"PERSIA_COORDINATOR="+strings.TrimPrefix(coordinator.URL, "http://"), "PERSIA_RUN=7", "PERSIA_TOKEN="+token, "PERSIA_POLL_SECONDS=0.05",
				"PERSIA_GATEWAY_PORT=9091", "PERSIA_GATEWAY_RESTART_SECONDS=0.05", "PERSIA_LAST_SCRAPE_SECONDS="+lastScrape)
			require.NoError(t, process.Start())
			var gateways [][]string
			require.Eventually(t, func() bool {
				text, _ := os.ReadFile(started)
				gateways = nil
				for line := range strings.Lines(string(text)) {
					gateways = append(gateways, strings.Fields(line))
				}
				return len(gateways) == 2
			}, patience, 10*time.Millisecond)
			end.Store(test.end != "")
			if test.end != "" && test.moved {
				require.Eventually(t, func() bool { _, err := os.Stat(ended); return err == nil }, patience, 10*time.Millisecond)
			}
			if test.moved {
				require.NoError(t, process.Process.Signal(syscall.SIGTERM))
			}
			_ = process.Wait()
			assert.Equal(t, test.status, process.ProcessState.ExitCode())
			assert.Contains(t, said.String(), "the metrics gateway ended with status 2: it starts again\n")
			for _, gateway := range gateways {
				assert.Equal(t, []string{"--log.level=error", "--web.listen-address=:9091"}, gateway[1:])
				pid, err := strconv.Atoi(gateway[0])
				require.NoError(t, err)
				assert.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, patience, 10*time.Millisecond, "gateway %d ends", pid)
			}
		})
	}
}

// completionArgs returns the arguments of a job without volumes.
func completionArgs() JobArgs {
	return JobArgs{
		Job:             config.Job{Name: "criteo", RunID: "1", NNWorker: config.NNWorker{Role: config.Role{Replicas: 8}}},
		Namespace:       NamespaceName,
		SystemPlacement: kube.Placement{NodeSelector: map[string]string{"pool": "system"}},
		Placement:       func(string) kube.Placement { return kube.Placement{} },
		Claims:          func([]config.Mount) []Claim { return nil },
	}
}

// TestCompletionName checks that a change of an immutable field of a Job makes another Job, and that
// no other change does.
func TestCompletionName(t *testing.T) {
	args := func(change func(*JobArgs)) JobArgs {
		args := completionArgs()
		change(&args)
		return args
	}
	name := func(change func(*JobArgs)) string { return completion(args(change)).job().Name }
	same := name(func(*JobArgs) {})
	assert.Regexp(t, `^criteo-completion-[0-9a-f]{8}$`, same)
	for what, test := range map[string]struct {
		change  func(*JobArgs)
		another bool
	}{
		"nothing":                      {func(*JobArgs) {}, false},
		"a suspended job":              {func(a *JobArgs) { a.Job.Suspend = true }, false},
		"other dataloaders":            {func(a *JobArgs) { a.Job.Dataloader.Replicas = 7 }, true},
		"another number of nn-workers": {func(a *JobArgs) { a.Job.NNWorker.Replicas = 9 }, true},
		"another run":                  {func(a *JobArgs) { a.Job.RunID = "2" }, true},
		"another place":                {func(a *JobArgs) { a.SystemPlacement.NodeSelector = nil }, true},
		"another job of the same run":  {func(a *JobArgs) { a.Job.Name = "other" }, true},
	} {
		t.Run(what, func(t *testing.T) { assert.Equal(t, test.another, name(test.change) != same) })
	}
	assert.Len(t, name(func(a *JobArgs) { a.Job.Name = strings.Repeat("j", 63) }), 63)
}

// TestCompletionRunsGateway: a JobSet's gateway ends with its job, and so the completion runs it.
// The gateway of a job with another engine stays, as its servers do.
func TestCompletionRunsGateway(t *testing.T) {
	for name, test := range map[string]struct {
		engine  config.Engine
		metrics bool
		runs    bool
	}{
		"a JobSet":                 {config.EngineJobSet, true, true},
		"a JobSet without metrics": {config.EngineJobSet, false, false},
		"StatefulSets":             {config.EngineStatefulSet, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			args := completionArgs()
			args.Job.Engine, args.Job.EnableMetrics = test.engine, test.metrics
			pod := completion(args).job().Spec.Template
			service := metricsService(args)
			selected := labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))
			assert.Equal(t, test.runs, selected, "its Service leads to the completion")
			assert.Equal(t, test.runs, pod.Labels[scrapedLabel] != "", "it is scraped")
			require.Len(t, pod.Spec.Containers, 1, "each container would be scraped")
			container := pod.Spec.Containers[0]
			ports := []corev1.ContainerPort{{Name: "http", ContainerPort: 9091}}
			want := capacity.CompletionWithGateway
			if !test.runs {
				ports, want = nil, capacity.Completion
			}
			assert.Equal(t, ports, container.Ports)
			assert.Equal(t, kube.Requests(want), container.Resources.Requests)
			assert.Equal(t, test.runs, slices.Contains(container.Env, corev1.EnvVar{Name: "PERSIA_GATEWAY_PORT", Value: "9091"}))
			assert.Equal(t, test.runs, container.ReadinessProbe != nil)
		})
	}
}
