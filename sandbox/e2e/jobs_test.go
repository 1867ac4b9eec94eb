package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// jobsVariable says how many jobs TestManyJobs has.
const jobsVariable = "E2E_JOBS"

// TestManyJobs: many training jobs in one stack, each of all four roles.
func TestManyJobs(t *testing.T) {
	t.Parallel()
	count := forms(3, 10)
	if text, ok := os.LookupEnv(jobsVariable); ok {
		var err error
		count, err = strconv.Atoi(text)
		require.NoError(t, err, jobsVariable)
	}
	project := t.TempDir()
	writeJobs(t, project, count)
	dir := t.TempDir()
	s := newSandboxOf(t, project, dir, "madeup")
	started := time.Now()
	err := s.Apply(t.Context())
	require.NoError(t, err)
	fmt.Fprintf(t.Output(), "TIME up of %d jobs: %s\n", count, time.Since(started).Round(time.Second))
	c := newCluster(t, s)
	for _, role := range []string{"nn-worker", "dataloader", "embedding-worker", "embedding-ps"} {
		c.assertOn("rest", count, c.pods("persia", "app.kubernetes.io/name="+role))
	}
	c.assertOn("system", count, c.pods("persia", "app.kubernetes.io/name=metrics-gateway"))
	assert.Empty(t, upChanges(t, s), "second up")
	log, err := filepath.Glob(filepath.Join(dir, "madeup", "pulumi", "logs", "*"))
	require.NoError(t, err)
	assert.Empty(t, log, "logs, which cost Pulumi's engine half of its time")
}

// writeJobs writes a stack of small jobs, alike but for their names.
func writeJobs(t testing.TB, project string, count int) {
	t.Helper()
	jobs := make([]object, count)
	for i := range jobs {
		jobs[i] = job(fmt.Sprintf("train-%03d", i), object{"enableMetrics": true})
	}
	configuration := stackText(t, project, madeUp{jobs: jobs})
	configuration["persia:nodePools"].([]object)[0]["nodes"] = 1 + count/15
	configuration["persia:cluster"].(object)["systemPool"] = object{"nodes": 2 + count/5}
	writeConfiguration(t, project, "madeup", configuration)
}
