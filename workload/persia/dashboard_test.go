package persia

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	gauge   = "gauge"
	counter = "counter"
)

// metrics are the existing metrics and their types. The names of PERSIA's are in files below
// rust/ in the latest source of https://github.com/PersiaML/PERSIA.
var metrics = map[string]string{
	// persia-embedding-server/src/embedding_worker_service/mod.rs
	"batch_unique_indices_rate":        gauge,
	"num_pending_batches":              gauge,
	"staleness":                        gauge,
	"nan_count":                        counter,
	"nan_grad_skipped":                 counter,
	"lookup_preprocess_time_cost_sec":  gauge,
	"lookup_rpc_time_cost_sec":         gauge,
	"lookup_postprocess_time_cost_sec": gauge,
	"lookup_total_time_cost_sec":       gauge,
	"update_gradient_time_cost_sec":    gauge,

	// persia-embedding-server/src/embedding_parameter_service/mod.rs
	"index_miss_count":                     counter,
	"index_miss_ratio":                     gauge,
	"gradient_id_miss_count":               counter,
	"lookup_hashmap_time_cost_sec":         gauge,
	"set_embedding_time_cost_sec":          gauge,
	"lookup_inference_batch_time_cost_sec": gauge,
	"decode_indices_time_cost_sec":         gauge,
	"encode_embedding_time_cost_sec":       gauge,

	// persia-incremental-update-manager/src/lib.rs
	"inc_update_delay_sec": gauge,

	// launch.py
	"persia_replica_attempt":  gauge,
	"persia_replica_alive":    gauge,
	"persia_replica_finished": gauge,
	"persia_replica_blocked":  gauge,

	// The Pushgateway's own, for all that push to it.
	"push_time_seconds": gauge,
}

type grafanaPanel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Datasource  struct{ UID string }
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct{ RefID, Expr, LegendFormat string }
}

func panels(t *testing.T) []grafanaPanel {
	t.Helper()
	var parsed struct{ Panels []grafanaPanel }
	require.NoError(t, json.Unmarshal([]byte(dashboard), &parsed))
	require.NotEmpty(t, parsed.Panels)
	return parsed.Panels
}

func TestDashboardRows(t *testing.T) {
	var rows []string
	for _, panel := range panels(t) {
		if panel.Type == "row" {
			rows = append(rows, panel.Title)
		}
	}
	assert.Equal(t, []string{"Accuracy", "Embedding workers", "Embedding parameter servers", "Replicas"}, rows)
}

func TestDashboardPanels(t *testing.T) {
	ids := map[int]string{}
	for _, panel := range panels(t) {
		assert.Positive(t, panel.ID, panel.Title)
		assert.Empty(t, ids[panel.ID], "%s has the id of another panel", panel.Title)
		ids[panel.ID] = panel.Title
		if panel.Type == "row" {
			continue
		}
		assert.NotEmpty(t, panel.Description, panel.Title)
		assert.NotEmpty(t, panel.FieldConfig.Defaults.Unit, panel.Title)
		assert.Equal(t, "${datasource}", panel.Datasource.UID, panel.Title)
		assert.NotEmpty(t, panel.Targets, panel.Title)
		refs := map[string]bool{}
		for _, target := range panel.Targets {
			assert.NotEmpty(t, target.LegendFormat, panel.Title)
			assert.False(t, refs[target.RefID], "%s has two queries %s", panel.Title, target.RefID)
			refs[target.RefID] = true
		}
	}
}

// TestDashboardGrid: Grafana's grid is 24 wide, and moves a panel that lies over
// another.
func TestDashboardGrid(t *testing.T) {
	taken := map[[2]int]string{}
	for _, panel := range panels(t) {
		at := panel.GridPos
		require.Positive(t, at.W*at.H, panel.Title)
		require.LessOrEqual(t, at.X+at.W, 24, panel.Title)
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				assert.Empty(t, taken[[2]int{x, y}], "%s lies over it", panel.Title)
				taken[[2]int{x, y}] = panel.Title
			}
		}
	}
}

// selector finds what a query selects: a name, its labels, and with a range the
// counters.
var selector = regexp.MustCompile(`([a-z0-9_]+)\{([^}]*)\}(\[[^]]+\])?`)

// TestDashboardMetrics: what is shown is there, and what is there is shown. A
// counter is worth nothing by itself but by its rate, and a gauge by itself.
func TestDashboardMetrics(t *testing.T) {
	shown := map[string]bool{}
	for _, panel := range panels(t) {
		for _, target := range panel.Targets {
			found := selector.FindAllStringSubmatch(target.Expr, -1)
			assert.NotEmpty(t, found, target.Expr)
			for _, match := range found {
				name, labels, interval := match[1], match[2], match[3]
				shown[name] = true
				assert.Contains(t, labels, `persia_job=~"$job"`, "%s shows the chosen jobs", target.Expr)
				if metrics[name] == counter {
					assert.Equal(t, "[$__rate_interval]", interval, target.Expr)
				} else {
					assert.Empty(t, interval, target.Expr)
				}
			}
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(metrics)), slices.Sorted(maps.Keys(shown)))
}

// TestDashboardJobs: the dashboard offers the jobs that have metrics.
func TestDashboardJobs(t *testing.T) {
	var parsed struct {
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(dashboard), &parsed))
	variables := parsed.Templating.List
	require.Len(t, variables, 2)
	assert.Equal(t, "datasource", variables[0].Name)
	assert.Equal(t, "datasource", variables[0].Type)
	assert.Equal(t, "job", variables[1].Name)
	assert.Equal(t, "label_values(push_time_seconds, "+JobLabel+")", variables[1].Definition)
}
