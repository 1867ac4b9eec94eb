package preflight

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorded returns an answer of Google Cloud in testdata/recorded.json, for the tests'
// project, with values in place of other placeholders.
func recorded(t *testing.T, name string, values map[string]string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "recorded.json"))
	require.NoError(t, err)
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &all))
	require.Contains(t, all, name)
	filled := os.Expand(string(all[name]), func(placeholder string) string {
		if value, ok := values[placeholder]; ok {
			return value
		}
		return map[string]string{"projectId": "my-project", "projectNumber": "210987654321"}[placeholder]
	})
	var of struct {
		Answer map[string]any `json:"answer"`
	}
	require.NoError(t, json.Unmarshal([]byte(filled), &of))
	require.NotEmpty(t, of.Answer)
	return of.Answer
}

// amount is the limit and the use of one.
type amount struct{ limit, usage float64 }

// regionQuotas are the quotas of the tests' region, and projectQuotas the quotas of their project.
var (
	regionQuotas = map[string]amount{
		"CPUS": {72, 4}, "DISKS_TOTAL_GB": {40960, 0}, "SSD_TOTAL_GB": {2048, 0}, "INSTANCES": {720, 1}, "IN_USE_ADDRESSES": {69, 0},
		"PREEMPTIBLE_CPUS": {0, 0}, "PREEMPTIBLE_NVIDIA_L4_GPUS": {0, 0}, "NVIDIA_L4_GPUS": {1, 0}, "NVIDIA_T4_GPUS": {1, 0},
	}
	projectQuotas = map[string]amount{"CPUS_ALL_REGIONS": {100, 4}, "GPUS_ALL_REGIONS": {2, 0}}
)

// withQuotas returns a recorded answer with such quotas, each in the form of the recorded one.
func withQuotas(t *testing.T, name string, quotas map[string]amount) string {
	t.Helper()
	answer := recorded(t, name, nil)
	form := answer["quotas"].([]any)[0].(map[string]any)
	var list []any
	for _, metric := range slices.Sorted(maps.Keys(quotas)) {
		one := maps.Clone(form)
		one["metric"], one["limit"], one["usage"] = metric, quotas[metric].limit, quotas[metric].usage
		list = append(list, one)
	}
	answer["quotas"] = list
	return encoded(t, answer)
}

// regionWith returns the region, with another quota for the GPUs of the tests.
func regionWith(t *testing.T, gpus amount) string {
	t.Helper()
	quotas := maps.Clone(regionQuotas)
	quotas["NVIDIA_L4_GPUS"] = gpus
	return withQuotas(t, "regions.get", quotas)
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}
