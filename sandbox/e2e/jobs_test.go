package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox"
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

// BenchmarkStacks measures the stack prod, and stacks of 1, 10 and 100 jobs: how long
// the commands take, from nothing and when nothing has changed, the processor time of the
// Pulumi engine, the memory of the engine, of the server of its state, and of the program with
// its providers, and the requests of the NATS operator. The control plane runs already. It prints a
// table of all, with the goals.
func BenchmarkStacks(b *testing.B) {
	var all []figure
	b.Run("prod", func(b *testing.B) {
		for range b.N {
			benchmarkStack(benchmarkFigures{b, "prod", &all}, repository, "prod")
		}
	})
	for _, count := range []int{1, 10, 100} {
		name := fmt.Sprintf("jobs=%d", count)
		b.Run(name, func(b *testing.B) {
			project := b.TempDir()
			writeJobs(b, project, count)
			for range b.N {
				benchmarkStack(benchmarkFigures{b, name, &all}, project, "madeup")
			}
		})
	}
	if !b.Failed() {
		all = append(all, growth(all, "jobs=1", "jobs=100")...)
	}
	printTables(figureTable(all))
}

func benchmarkStack(b benchmarkFigures, project, stack string) {
	s := newSandboxOf(b, project, b.TempDir(), stack)
	require.NoError(b, s.Cluster().Start(b.Context(), b.Output()))
	measure(b, "preview-s", func() error { _, err := s.Preview(b.Context()); return err })
	watched := watchUp(b.B)
	measure(b, "up-s", func() error { return s.Apply(b.Context()) })
	used := watched()
	b.report(used[engineProcess].cpu.Seconds(), "engine-cpu-s")
	for _, name := range []string{engineProcess, stateProcess, programProcess} {
		b.report(float64(used[name].peak)/(1<<20), name+"-MiB")
	}
	b.report(float64(operatorRequests(b.B, s))/float64(natsClusters(b.B, project, stack)), requestsPerCluster)
	measure(b, "second-preview-s", func() error { _, err := s.Preview(b.Context()); return err })
	measure(b, "second-up-s", func() error { return s.Apply(b.Context()) })
	result, err := s.Up(b.Context())
	require.NoError(b, err)
	require.Len(b, *result.Summary.ResourceChanges, 1, "nothing has changed")
	b.report(float64((*result.Summary.ResourceChanges)["same"]), "resources")
	measure(b, "status-s", func() error { return s.Status(b.Context(), io.Discard) })
	measure(b, "down-s", func() error { return s.Down(b.Context()) })
	b.ReportMetric(0, "ns/op")
}

// natsClusters counts the NatsClusters of a stack.
func natsClusters(b *testing.B, project, stack string) int {
	b.Helper()
	count := 0
	for _, object := range kubernetesObjects(b, project, stack) {
		if object.GetKind() == "NatsCluster" {
			count++
		}
	}
	require.Positive(b, count)
	return count
}

// operatorRequests counts the requests of the NATS operator, without the lease that it renews.
func operatorRequests(b *testing.B, s *sandbox.Sandbox) int {
	b.Helper()
	count := 0
	for _, event := range operatorEvents(b, s) {
		if event.ObjectRef.Resource != "endpoints" {
			count++
		}
	}
	return count
}

// measure reports how many seconds something takes.
func measure(b benchmarkFigures, unit string, do func() error) {
	b.Helper()
	started := time.Now()
	require.NoError(b, do())
	b.report(time.Since(started).Seconds(), unit)
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
