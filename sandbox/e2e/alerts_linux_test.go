package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
// the namespace persia.
type alerts struct{ address string }

func (r *training) watchAlerts(t *testing.T, jobs ...string) alerts {
	t.Helper()
	dir := t.TempDir()
	output, err := exec.Command(filepath.Join(repository, "scripts", "prometheus.sh"), dir).CombinedOutput()
	require.NoError(t, err, "%s", output)
	rest := testkit.Must(r.s.Cluster().RESTConfig())(t)
	client := testkit.Must(dynamic.NewForConfig(rest))(t)
	rules, err := client.Resource(schema.GroupVersionResource{Group: "monitoring.googleapis.com", Version: "v1", Resource: "rules"}).
		Namespace("persia").Get(t.Context(), "persia", metav1.GetOptions{})
	require.NoError(t, err)

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
			"global":     object{"scrape_interval": "15s"},
			"rule_files": []string{write("rules.yaml", rules.Object["spec"])}, "scrape_configs": scrapes,
		}))
	prometheus.Stdout, prometheus.Stderr = t.Output(), t.Output()
	require.NoError(t, prometheus.Start())
	t.Cleanup(func() { _ = prometheus.Wait() }) // the end of the test's context kills it
	return a
}

// await waits until exactly some alerts fire, each as NAME JOB REPLICA, but for others that may fire, which
// may have only a NAME.
func (a alerts) await(t *testing.T, maybe []string, want ...string) {
	t.Helper()
	var firing []string
	assert.EventuallyWithT(t, func(c *assert.CollectT) {
		answer, err := http.Get("http://" + a.address + "/api/v1/alerts")
		require.NoError(c, err)
		defer func() { _ = answer.Body.Close() }()
		var found struct {
			Data struct {
				Alerts []struct {
					Labels map[string]string
					State  string
				}
			}
		}
		require.NoError(c, json.NewDecoder(answer.Body).Decode(&found))
		firing = nil
		for _, alert := range found.Data.Alerts {
			name := alert.Labels["alertname"]
			text := strings.TrimSpace(strings.Join([]string{name, alert.Labels["persia_job"], alert.Labels["replica"]}, " "))
			if alert.State == "firing" && !slices.Contains(maybe, name) && !slices.Contains(maybe, text) {
				firing = append(firing, text)
			}
		}
		assert.ElementsMatch(c, want, firing)
	}, 3*time.Minute, time.Second)
	report(t, "alerts: %v", firing)
}
