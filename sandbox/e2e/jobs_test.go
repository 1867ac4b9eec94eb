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

// jobsVariable says how many jobs TestManyJobs has.
const jobsVariable = "E2E_JOBS"

// TestManyJobs: many training jobs in one stack, each of all four roles.
func TestManyJobs(t *testing.T) {
	t.Parallel()
	count := 10
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
	_, err := s.Up(t.Context())
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

// BenchmarkStacks measures the stack prod, and stacks of 1, 10 and 100 jobs: how long
// the commands take, from nothing and when nothing has changed, and the processor time
// and memory of the Pulumi engine. The control plane runs already.
func BenchmarkStacks(b *testing.B) {
	b.Run("prod", func(b *testing.B) {
		for range b.N {
			benchmarkStack(b, repository, "prod")
		}
	})
	for _, count := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("jobs=%d", count), func(b *testing.B) {
			project := b.TempDir()
			writeJobs(b, project, count)
			for range b.N {
				benchmarkStack(b, project, "madeup")
			}
		})
	}
}

func benchmarkStack(b *testing.B, project, stack string) {
	s := newSandboxOf(b, project, b.TempDir(), stack)
	require.NoError(b, s.Cluster().Start(b.Context(), b.Output()))
	measure(b, "preview-s", func() error { _, err := s.Preview(b.Context()); return err })
	engine := watchEngine(b)
	measure(b, "up-s", func() error { return s.Apply(b.Context()) })
	used := engine()
	b.ReportMetric(used.cpu.Seconds(), "engine-cpu-s")
	b.ReportMetric(float64(used.peak)/(1<<20), "engine-MiB")
	measure(b, "second-preview-s", func() error { _, err := s.Preview(b.Context()); return err })
	measure(b, "second-up-s", func() error { return s.Apply(b.Context()) })
	result, err := s.Up(b.Context())
	require.NoError(b, err)
	require.Len(b, *result.Summary.ResourceChanges, 1, "nothing has changed")
	b.ReportMetric(float64((*result.Summary.ResourceChanges)["same"]), "resources")
	measure(b, "down-s", func() error { return s.Down(b.Context()) })
	b.ReportMetric(0, "ns/op")
}

// measure reports how many seconds something takes.
func measure(b *testing.B, unit string, do func() error) {
	b.Helper()
	started := time.Now()
	require.NoError(b, do())
	b.ReportMetric(time.Since(started).Seconds(), unit)
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
	text, err := yaml.Marshal(object{"config": configuration})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(project, "Pulumi.madeup.yaml"), text, 0o600))
}
