package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"persia/internal/testkit"
	"persia/sandbox/process"
)

// alerts is a Prometheus that does what Google's does: it scrapes the gateways of jobs, and evaluates the rules of
// the namespace persia, ten times as often, for a tenth of the minutes for which a replica has to be slow.
type alerts struct{ address string }

func (r *training) watchAlerts(t *testing.T, jobs ...string) alerts {
	t.Helper()
	dir := t.TempDir()
	output, err := exec.Command(filepath.Join(repository, "scripts", "prometheus.sh"), dir).CombinedOutput()
	require.NoError(t, err, "%s", output)
	client := testkit.Must(dynamic.NewForConfig(testkit.Must(r.s.Cluster().RESTConfig())(t)))(t)
	rules, err := client.Resource(schema.GroupVersionResource{Group: "monitoring.googleapis.com", Version: "v1", Resource: "rules"}).
		Namespace("persia").Get(t.Context(), "persia", metav1.GetOptions{})
	require.NoError(t, err)
	spec := strings.NewReplacer("10m", "60s", "15m", "90s", `"30s"`, `"3s"`).Replace(string(testkit.Must(json.Marshal(rules.Object["spec"]))(t)))

	write := func(name string, content any) string {
		text := testkit.Must(yaml.Marshal(content))(t)
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		return path
	}
	var scrapes []object
	node := ""
	for _, job := range jobs {
		gateway := r.pods("persia", "prom="+job)
		require.Len(t, gateway, 1)
		node = gateway[0].Status.HostIP
		scrapes = append(scrapes, object{
			"job_name": job, "static_configs": []object{{"targets": []string{gateway[0].Status.PodIP + ":9091"}, "labels": object{"persia_job": job}}},
		})
	}
	// Only the node itself reaches all pods.
	machines, err := process.Matching(func(p process.Process) bool {
		return strings.HasPrefix(p.Command, "/opt/sandbox machine") && strings.Contains(p.Command, r.dir)
	})
	require.NoError(t, err)
	require.Len(t, machines, 1)
	a := alerts{node + ":39090"}
	prometheus := exec.CommandContext(t.Context(), "nsenter", "--target", strconv.Itoa(machines[0].PID), "--net", filepath.Join(dir, "usr/bin/prometheus"),
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", a.address, "--log.level=error",
		"--config.file", write("prometheus.yaml", object{
			"global":     object{"scrape_interval": "1500ms"},
			"rule_files": []string{write("rules.yaml", json.RawMessage(spec))}, "scrape_configs": scrapes,
		}))
	prometheus.Stdout, prometheus.Stderr = t.Output(), t.Output()
	require.NoError(t, prometheus.Start())
	t.Cleanup(func() { _ = prometheus.Wait() }) // the end of the test's context kills it
	return a
}

// await waits until exactly some alerts have fired, each as NAME JOB REPLICA, but for others, maybe as NAME alone.
func (a alerts) await(t *testing.T, maybe []string, want ...string) {
	t.Helper()
	var fired []string
	assert.EventuallyWithT(t, func(c *assert.CollectT) {
		answer, err := http.Get("http://" + a.address + "/api/v1/query?query=" + url.QueryEscape(`last_over_time(ALERTS{alertstate="firing"}[1h])`))
		require.NoError(c, err)
		defer func() { _ = answer.Body.Close() }()
		var found struct {
			Data struct {
				Result []struct{ Metric map[string]string }
			}
		}
		require.NoError(c, json.NewDecoder(answer.Body).Decode(&found))
		fired = nil
		for _, alert := range found.Data.Result {
			name := alert.Metric["alertname"]
			text := strings.TrimSpace(name + " " + alert.Metric["persia_job"] + " " + alert.Metric["replica"] + alert.Metric["exported_instance"])
			if !slices.Contains(maybe, name) && !slices.Contains(maybe, text) {
				fired = append(fired, text)
			}
		}
		assert.ElementsMatch(c, want, fired)
	}, 5*time.Minute, time.Second)
	report(t, "alerts: %v", fired)
}

// testSlow slows replicas of a job down whose servers do not admit all IDs. Each time, the alert that says so fires, and no other.
func (r *training) testSlow(t *testing.T) {
	changed := func(file string, changes ...string) string {
		text := testkit.Read(t, filepath.Join(repository, "examples", "training", file))
		return r.volume.put(t, "slow/"+file, strings.NewReplacer(changes...).Replace(text))
	}
	job := r.arrivingJob(t, "slow", 6, object{"nats": object{"size": 1}, "enableMetrics": true, "dataloader": object{"replicas": 1}})
	change(job["persiaEnv"].(object), object{
		"PERSIA_GLOBAL_CONFIG": changed("global_config.yml", "push_interval_seconds: 10", "push_interval_seconds: 1"),
		"PERSIA_NN_WORKER_ENTRY": changed("train.py", "import json", "import sys; sys.path.insert(0, '/opt/training'); import json",
			"import Adam", "import Adam; from persia.embedding import EmbeddingConfig", "=Adam(lr=0.02)", "=Adam(lr=0.02), embedding_config=EmbeddingConfig(admit_probability=0.5)"),
	})
	job["env"] = append(job["env"].([]object)[3:], object{"name": "CLICKS_BATCHES", "value": "1000000"},
		object{"name": "CLICKS_USERS", "value": "100000"}, object{"name": "CLICKS_BATCH_SIZE", "value": "10000"}) // lookups of milliseconds
	r.volume.arrive(t, "slow", 0, 1_000_000)
	r.upWith(t, job)
	alerts, want := r.watchAlerts(t, "slow"), []string{"PersiaSpoiledGradients slow"}
	alerts.await(t, nil, want...)
	const cpu = `exec nice -n -20 python3 -c 'import os, time
while True: os.kill('$0', 19), time.sleep(0.01), os.kill('$0', 18), time.sleep(0.0005)'`
	const network = `exec nsenter --target $0 --net python3 testdata/late.py 0.05`
	for _, fault := range []struct{ alert, pod, program, slow string }{
		{"PersiaSlowEmbeddingWorker", "slow-embedding-worker-1", "/persia-embedding-worker", cpu},
		{"PersiaSlowServer", "slow-embedding-ps-1", "/persia-embedding-parameter-server", cpu},
		{"PersiaSlowNetwork", "slow-embedding-worker-1", "/persia-embedding-worker", network},
	} {
		t.Run(fault.alert, func(t *testing.T) {
			began, pid := time.Now(), r.processes(t, r.pod(t, fault.pod).UID, fault.program)[0].PID
			slow := exec.CommandContext(t.Context(), "sh", "-c", fault.slow, strconv.Itoa(pid))
			require.NoError(t, slow.Start())
			t.Cleanup(func() { _, _ = slow.Wait(), syscall.Kill(pid, syscall.SIGCONT) })
			want = append(want, fault.alert+" slow rep_1")
			alerts.await(t, nil, want...)
			report(t, "%s after %.0f s", fault.alert, time.Since(began).Seconds())
		})
	}
}
