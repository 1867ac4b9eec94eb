package preflight

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuotas(t *testing.T) {
	const asks = "ask for 3 of NVIDIA_L4_GPUS in us-central1 at https://console.cloud.google.com/iam-admin/quotas?project=my-project; it can take days"
	cases := map[string]struct {
		limit, usage string
		resources    int
		want         string
	}{
		"exactly enough": {"3.0", "2.0", 0, ""},
		"too small":      {"0.0", "0.0", 0, "missing quota NVIDIA_L4_GPUS: 1 needed, us-central1: limit 0, of which 0 used; ask for 1 of"},
		"used":           {"2.0", "2.0", 0, "missing quota NVIDIA_L4_GPUS: 1 needed, us-central1: limit 2, of which 2 used; " + asks},
		"used by the stack": {"2.0", "2.0", 70, "warning quota NVIDIA_L4_GPUS: 1 needed, us-central1: limit 2, of which 2 used; " +
			"part of that may be this stack's own; if it is not: " + asks},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.stacks(test.resources)
			text, err := os.ReadFile("testdata/region.json")
			require.NoError(t, err)
			const recorded = `{"limit": 1.0, "metric": "NVIDIA_L4_GPUS", "usage": 0.0}`
			require.Contains(t, string(text), recorded)
			m.write("region.json", strings.Replace(string(text), recorded,
				fmt.Sprintf(`{"limit": %s, "metric": "NVIDIA_L4_GPUS", "usage": %s}`, test.limit, test.usage), 1))
			m.gcloud("compute regions describe us-central1", "cat "+filepath.Join(filepath.Dir(m.project), "region.json"))
			found := problems(m.run(m.options()))
			if test.want == "" {
				assert.Empty(t, found)
			}
			assert.Contains(t, found, test.want)
		})
	}
	t.Run("not told", func(t *testing.T) {
		m := newMachine(t)
		m.stack(strings.ReplaceAll(created, "machineType: g2-standard-32, nodes: 1, gpu: {type: nvidia-l4, count: 1}", "machineType: c4-standard-8, nodes: 1"))
		assert.Contains(t, problems(m.run(m.options())), "unchecked quota CPUS_PER_VM_FAMILY (vm_family C4): gcloud does not tell it; needed: 8, us-central1")
	})
	t.Run("spot", func(t *testing.T) {
		m := newMachine(t)
		m.stack(strings.ReplaceAll(created, "nodes: 1, gpu", "nodes: 1, spot: true, gpu"))
		found := problems(m.run(m.options()))
		assert.Contains(t, found, "warning quota PREEMPTIBLE_CPUS: 32 needed, us-central1: limit 0, of which 0 used; without a quota of their own, spot machines count to the ordinary one")
	})
}
