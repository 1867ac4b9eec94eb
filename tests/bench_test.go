package tests

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"persia/internal/programtest"

	"github.com/stretchr/testify/require"
)

// BenchmarkProgram measures the program alone, without an engine: the time and the
// memory that it allocates for stacks of 1, 10 and 100 jobs.
func BenchmarkProgram(b *testing.B) {
	for _, count := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("jobs=%d", count), func(b *testing.B) {
			configuration := manyJobs(b, count)
			b.ReportAllocs()
			for b.Loop() {
				recorder, err := programtest.Deploy(b, configuration)
				require.NoError(b, err)
				b.ReportMetric(float64(len(recorder.Resources)), "resources")
			}
		})
	}
}

// manyJobs is the stack dev with its job several times.
func manyJobs(t testing.TB, count int) map[string]string {
	t.Helper()
	configuration := programtest.ReadStack(t, "dev")
	var jobs []map[string]any
	require.NoError(t, json.Unmarshal([]byte(configuration["persia:jobs"]), &jobs))
	many := make([]map[string]any, count)
	for i := range many {
		many[i] = maps.Clone(jobs[0])
		many[i]["name"] = fmt.Sprintf("train-%03d", i)
		// A directory of a node is for jobs on one node.
		delete(many[i], "mounts")
	}
	text, err := json.Marshal(many)
	require.NoError(t, err)
	configuration["persia:jobs"] = string(text)
	programtest.Edit(t, configuration, "persia:nodePools", func(pools any) { pools.([]any)[0].(map[string]any)["nodes"] = 2 * count })
	programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
		cluster.(map[string]any)["systemPool"] = map[string]any{"nodes": 2 + count/5}
	})
	return configuration
}
