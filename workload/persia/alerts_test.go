package persia

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// TestAlerts runs Prometheus' own tests of the alerts: the causes of each, and that no other fires.
func TestAlerts(t *testing.T) {
	testkit.Processes(t)
	dir := t.TempDir()
	output, err := exec.Command("../../scripts/prometheus.sh", dir).CombinedOutput()
	require.NoError(t, err, "%s", output)
	output, err = exec.Command(filepath.Join(dir, "usr/bin/promtool"), "test", "rules", "testdata/alerts.test.yaml").CombinedOutput()
	assert.NoError(t, err, "%s", output)
}
