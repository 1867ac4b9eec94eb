package persia

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

const (
	gauge   = "gauge"
	counter = "counter"
	// total is a counter that its program declares as a gauge.
	total = "total"
)

// exporter is a program whose metrics the dashboard shows.
type exporter struct {
	// labels are the labels with which queries select the program's metrics.
	labels []string
	types  map[string]string
}

// ofJobs selects the series of the chosen jobs, by the label that the collector adds.
var ofJobs = []string{`persia_job=~"$job"`, `cluster=~"$cluster"`}

var exporters = map[string]exporter{
	// launch.py, machine.py, and the training scripts of the examples: TestPushedMetrics.
	"replicas": {ofJobs, map[string]string{
		"persia_replica_attempt": gauge, "persia_replica_alive": gauge, "persia_replica_finished": gauge,
		"persia_replica_blocked": gauge, "persia_replica_memory_ratio": gauge,
	}},
	"coordinator": {ofJobs, map[string]string{
		"persia_job_attempt": gauge, "persia_job_failed": gauge, "persia_job_failures": gauge,
		"persia_job_stuck": gauge, "persia_job_unsaved_attempts": gauge, "persia_job_unsaved_seconds": gauge,
		"persia_job_checkpoint_interval_seconds": gauge, "persia_job_ended_attempts": gauge,
		"persia_job_seconds": gauge, "persia_job_partial_attempts": gauge, "persia_job_failures_total": counter,
		"persia_job_slow_ratio": gauge,
	}},
	"training scripts": {ofJobs, map[string]string{
		"persia_model_loss": gauge, "persia_model_auc": gauge, "persia_model_rows_per_second": gauge,
		"persia_model_step_seconds": gauge,
	}},

	// The Pushgateway's own, for all that push to it.
	"Pushgateway": {ofJobs, map[string]string{"push_time_seconds": gauge}},

	// In files below rust/ in the latest source of https://github.com/PersiaML/PERSIA.
	"persia-embedding-server/src/embedding_worker_service/mod.rs": {ofJobs, map[string]string{
		"batch_unique_indices_rate": gauge, "num_pending_batches": gauge, "staleness": gauge, "nan_count": counter,
		"nan_grad_skipped": counter, "lookup_preprocess_time_cost_sec": gauge, "lookup_rpc_time_cost_sec": gauge,
		"lookup_postprocess_time_cost_sec": gauge, "lookup_total_time_cost_sec": gauge,
		"update_gradient_time_cost_sec": gauge,
	}},
	"persia-embedding-server/src/embedding_parameter_service/mod.rs": {ofJobs, map[string]string{
		"index_miss_count": counter, "index_miss_ratio": gauge, "gradient_id_miss_count": counter,
		"lookup_hashmap_time_cost_sec": gauge, "set_embedding_time_cost_sec": gauge,
	}},

	// GKE's own DCGM exporter, of persia:cluster.monitoring.components. Its metrics and labels
	// were recorded from a cluster of version 1.34 in
	// https://github.com/elideng-sg/hypercomputer-internode-deepdive/blob/8af85188fc3772c4d18ecd84989b8a6c3686caf8/assets/lab-10/dcgm-metrics-raw.txt.
	// GKE collects them without the labels of the exporter's pod (scrape-config.txt), so
	// namespace and pod are of the pod that has the GPU.
	"DCGM exporter": {[]string{`namespace="persia"`, `pod=~"($job)-nn-worker-.*"`, `cluster=~"$cluster"`}, map[string]string{
		"DCGM_FI_PROF_SM_ACTIVE": gauge, "DCGM_FI_DEV_GPU_UTIL": gauge, "DCGM_FI_DEV_FB_USED": gauge,
		"DCGM_FI_DEV_FB_TOTAL": gauge,
	}},

	// The exporter of persia:nats.metrics has a gauge for each number of /varz, which TestNATS in sandbox/e2e asks:
	// https://github.com/nats-io/prometheus-nats-exporter/blob/main/collector/collector.go (initMetricsFromServers).
	"NATS exporter": {[]string{`namespace="nats-io"`, `($job)-nats`, `cluster=~"$cluster"`}, map[string]string{
		"gnatsd_varz_in_msgs": total, "gnatsd_varz_out_msgs": total, "gnatsd_varz_in_bytes": total,
		"gnatsd_varz_out_bytes": total, "gnatsd_varz_slow_consumers": total, "gnatsd_varz_connections": gauge,
		"gnatsd_varz_mem": gauge,
	}},
}

// selector matches what a query selects: a name, its labels, and a range for counters.
var selector = regexp.MustCompile(`([a-zA-Z0-9_]+)\{([^}]*)\}(\[[^]]+\])?`)

// TestDashboard: the dashboard shows all metrics, and no other: a counter by its rate, a gauge by its value.
func TestDashboard(t *testing.T) {
	var parsed struct {
		Panels []struct {
			Type, Title string
			FieldConfig struct {
				Defaults struct{ Thresholds struct{ Steps []any } }
			}
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(dashboard), &parsed))
	for _, panel := range parsed.Panels[:6] {
		assert.Equal(t, "stat", panel.Type, panel.Title)
		assert.NotEmpty(t, panel.FieldConfig.Defaults.Thresholds.Steps, panel.Title)
	}
	types, labelsOf := map[string]string{}, map[string][]string{}
	for _, from := range exporters {
		for name, kind := range from.types {
			types[name], labelsOf[name] = kind, from.labels
		}
	}
	shown := map[string]string{}
	for _, panel := range parsed.Panels {
		for _, target := range panel.Targets {
			found := selector.FindAllStringSubmatch(target.Expr, -1)
			assert.NotEmpty(t, found, target.Expr)
			for _, match := range found {
				name, labels, interval := match[1], match[2], match[3]
				shown[name] = types[name]
				for _, label := range labelsOf[name] {
					assert.Contains(t, labels, label, target.Expr)
				}
				assert.Equal(t, types[name] != gauge, interval == "[$__rate_interval]", target.Expr)
			}
		}
	}
	assert.Equal(t, types, shown, "the metrics that programs export, and those that the dashboard shows")
}

// TestRunbooks: each alert is in the table of the page, and names a heading there.
func TestRunbooks(t *testing.T) {
	rules, page := testkit.Read(t, "alerts.yaml")+testkit.Read(t, "../nats/alerts.yaml"), testkit.Read(t, "../../docs/reference/troubleshooting.md")
	found := regexp.MustCompile(`(?s)- alert: (\w+).*?runbook_url: docs/reference/troubleshooting.md#([a-z-]+)\n`).FindAllStringSubmatch(rules, -1)
	assert.Len(t, found, strings.Count(rules, "- alert:"))
	for _, match := range found {
		assert.Contains(t, page, "`"+match[1]+"`", match[1])
		assert.Contains(t, strings.ToLower(page), "\n## "+strings.ReplaceAll(match[2], "-", " ")+"\n", match[1])
	}
}

// TestPushedMetrics reads the names of the metrics that programs of this repository push.
func TestPushedMetrics(t *testing.T) {
	const examples = "../../examples/"
	for files, pushes := range map[string]struct{ program, with, prefix, values string }{
		"launch.py":                    {"replicas", "gateway.py", "", `(?s)def values\(self\):.*?(\{.*?\n +\})`},
		"machine.py ledger.py":         {"coordinator", "gateway.py", "", `(["']persia_job_\w+(?:"[]:]|\{\{))`},
		examples + "shop/train.py":     {"training scripts", examples + "shop/metrics.py", "persia_model_", `metrics\.push\((\{.*?\})[,)]`},
		examples + "training/train.py": {"training scripts", examples + "training/metrics.py", "persia_model_", `metrics\.push\((\{.*?\})[,)]`},
	} {
		names, text := map[string]bool{}, ""
		for _, file := range strings.Fields(files) {
			text += testkit.Read(t, file)
		}
		for _, values := range regexp.MustCompile(pushes.values).FindAllStringSubmatch(text, -1) {
			for _, key := range regexp.MustCompile(`["'](\w+)(?:"[]:]|\{\{)`).FindAllStringSubmatch(values[1], -1) {
				names[pushes.prefix+key[1]] = true
			}
		}
		assert.ElementsMatch(t, slices.Collect(maps.Keys(exporters[pushes.program].types)), slices.Collect(maps.Keys(names)), files)
		assert.Contains(t, testkit.Read(t, pushes.with), pushes.prefix+"{name} {value}\\n", files)
	}
}

// TestAlerts runs promtool on alerts.test.yaml, and on the histories that python_test/alerts.py generates.
func TestAlerts(t *testing.T) {
	testkit.Processes(t)
	dir := t.TempDir()
	output, err := exec.Command("../../scripts/prometheus.sh", dir).CombinedOutput()
	require.NoError(t, err, "%s", output)
	write := exec.Command("python3", "-B", "python_test/alerts.py", "alerts.yaml")
	write.Env, write.Stderr = append(os.Environ(), "PYTHONPATH=.:../../examples/training", "PERSIA_METRICS_GATEWAY_ADDR=gateway"), os.Stderr
	histories := testkit.Must(write.Output())(t)
	tests := filepath.Join(dir, "histories.test.yaml")
	require.NoError(t, os.WriteFile(tests, histories, 0o600))
	output, err = exec.Command(filepath.Join(dir, "usr/bin/promtool"), "test", "rules", "testdata/alerts.test.yaml", tests).CombinedOutput()
	assert.NoError(t, err, "%s", output)
}
