package sandbox

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// TestDashboardQueries makes Prometheus parse the queries of the dashboard, with values for
// Grafana's variables. It is in this module because the program itself does not need Prometheus.
func TestDashboardQueries(t *testing.T) {
	text := testkit.Must(os.ReadFile("../workload/persia/dashboard.json"))(t)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	variables := strings.NewReplacer("$__rate_interval", "1m0s", "$job", "(criteo|adult-income)")
	queries := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			_, err := parser.ParseExpr(variables.Replace(target.Expr))
			assert.NoError(t, err, "%s: %s", panel.Title, target.Expr)
			queries++
		}
	}
	assert.Greater(t, queries, 30)
}
