package persia

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

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
