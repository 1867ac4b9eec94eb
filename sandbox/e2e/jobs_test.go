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
	"sigs.k8s.io/yaml"
)

// jobsVariable says how many jobs TestManyJobs has: a hundred take twenty minutes.
const jobsVariable = "E2E_JOBS"

// TestManyJobs: many trainings in one stack, each of all four roles.
func TestManyJobs(t *testing.T) {
	if !alone(t) {
		return
	}
	count := 10
	if text, ok := os.LookupEnv(jobsVariable); ok {
		var err error
		count, err = strconv.Atoi(text)
		require.NoError(t, err, jobsVariable)
	}
	project := t.TempDir()
	writeJobs(t, project, count)
	s := newSandboxOf(t, project, t.TempDir(), "madeup")
	started := time.Now()
	_, err := s.Up(t.Context())
	require.NoError(t, err)
	fmt.Printf("TIME up of %d jobs: %s\n", count, time.Since(started).Round(time.Second))
	c := newCluster(t, s)
	for _, role := range []string{"nn-worker", "dataloader", "embedding-worker", "embedding-ps"} {
		c.assertOn("rest", count, c.pods("persia", "app.kubernetes.io/name="+role))
	}
	c.assertOn("system", count, c.pods("persia", "app.kubernetes.io/name=metrics-gateway"))
	assert.Empty(t, upChanges(t, s), "second up")
}

// BenchmarkJobs measures stacks of 1, 10 and 100 jobs from nothing: how long a
// preview and an up take, and the processor time and memory of the Pulumi engine.
func BenchmarkJobs(b *testing.B) {
	for _, count := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("jobs=%d", count), func(b *testing.B) {
			for range b.N {
				benchmarkJobs(b, count)
			}
		})
	}
}

func benchmarkJobs(b *testing.B, count int) {
	project, dir := b.TempDir(), b.TempDir()
	writeJobs(b, project, count)
	s := newSandboxOf(b, project, dir, "madeup")
	started := time.Now()
	_, err := s.Preview(b.Context())
	require.NoError(b, err)
	b.ReportMetric(time.Since(started).Seconds(), "preview-s")
	engine := watchEngine(b)
	started = time.Now()
	result, err := s.Up(b.Context())
	require.NoError(b, err)
	b.ReportMetric(time.Since(started).Seconds(), "up-s")
	used := engine()
	b.ReportMetric(used.cpu.Seconds(), "engine-cpu-s")
	b.ReportMetric(float64(used.peak)/(1<<20), "engine-MiB")
	b.ReportMetric(float64((*result.Summary.ResourceChanges)["create"]), "resources")
	b.ReportMetric(0, "ns/op")
	require.NoError(b, s.Down(b.Context()))
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
	configuration["persia:cluster"].(object)["systemPool"] = object{"nodes": 2 + count/10}
	text, err := yaml.Marshal(object{"config": configuration})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(project, "Pulumi.madeup.yaml"), text, 0o600))
}
