package preflight

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestQuotas(t *testing.T) {
	const asks = "request 3 of NVIDIA_L4_GPUS in us-central1 at https://console.cloud.google.com/iam-admin/quotas?project=my-project, which can take days"
	cases := map[string]struct {
		limit, usage float64
		resources    int
		want         string
	}{
		"exactly enough": {3, 2, 0, ""},
		"too small":      {0, 0, 0, "missing quota NVIDIA_L4_GPUS: 1 needed, us-central1: limit 0, 0 of it used; request 1 of"},
		"used":           {2, 2, 0, "missing quota NVIDIA_L4_GPUS: 1 needed, us-central1: limit 2, 2 of it used; " + asks},
		"used by the stack": {2, 2, 70, "warning quota NVIDIA_L4_GPUS: 1 needed, us-central1: limit 2, 2 of it used; " +
			"this stack may already use some of it; if it does not: " + asks},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.stacks(test.resources)
			m.prints("compute regions describe us-central1", regionWith(t, amount{test.limit, test.usage}))
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
		assert.Contains(t, problems(m.run(m.options())), "unchecked quota CPUS_PER_VM_FAMILY (vm_family C4): gcloud does not list this quota; needed: 16, us-central1")
	})
	t.Run("spot", func(t *testing.T) {
		m := newMachine(t)
		m.stack(strings.ReplaceAll(created, "nodes: 1, gpu", "nodes: 1, spot: true, gpu"))
		found := problems(m.run(m.options()))
		assert.Contains(t, found, "warning quota PREEMPTIBLE_CPUS: 32 needed, us-central1: limit 0, 0 of it used; with a limit of 0, spot machines use the ordinary quota")
	})
}
