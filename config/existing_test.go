package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"persia/internal/testkit"
)

// onExisting moves the base stack to an existing cluster.
func onExisting(more edits) edits {
	return edits{
		"persia:project": nil,
		"persia:cluster": edits{"name": "persia", "existing": edits{"context": "gke_office_persia", "systemPool": "loaders"}},
		"persia:nodePools[1]": edits{"name": "loaders", "machineType": "n2-highmem-32", "nodes": 4,
			"taints": []any{edits{"key": "dedicated", "value": "loaders", "effect": "NoSchedule"}}},
	}.And(more)
}

func TestPoolsOfAnExistingCluster(t *testing.T) {
	stack := testkit.Must(testkit.Load(t, onExisting(nil)))(t)
	assert.Equal(t, "loaders", stack.SystemPoolName())
	assert.Equal(t, "loaders", stack.NATS.NodePool)
	assert.Equal(t, stack.NodePools, stack.Pools(), "there is no other pool than those described")
	plan := stack.Plan()
	assert.Empty(t, plan.Quotas, "the machines are there")
	assert.Empty(t, plan.Ranges)
	assert.Equal(t, 2, plan.Pools[0].Needed)
}

// TestExistingClusterHasPrices checks that the name of a context that gcloud wrote determines the region of the prices.
func TestExistingClusterHasPrices(t *testing.T) {
	for context, listed := range map[string]bool{
		"gke_office_us-central1_persia":     true,
		"gke_office_us-central1-a_persia":   true,
		"gke_office_europe-west4-b_persia":  false,
		"gke_office_persia":                 false,
		"kind_office_us-central1_persia":    false,
		"gke_office_us-central1_persia_new": false,
	} {
		stack := testkit.Must(testkit.Load(t, onExisting(edits{
			"persia:cluster": edits{"name": "persia", "existing": edits{"context": context, "systemPool": "loaders"}},
		})))(t)
		plan := stack.Plan()
		assert.Equal(t, listed, plan.Pools[0].HourlyCost != nil, context)
	}
}

func TestExistingClusterRefuses(t *testing.T) {
	testkit.Refused(t, []testkit.Refusal{
		{"neither kubeconfig nor context", onExisting(edits{"persia:cluster": edits{"name": "persia", "existing": edits{"systemPool": "loaders"}}}),
			"persia:cluster.existing.context", []string{"kubectl config get-contexts"}},
		{"relative path", onExisting(edits{"persia:cluster": edits{"name": "persia", "existing": edits{"kubeconfig": "kubeconfig", "systemPool": "loaders"}}}),
			"persia:cluster.existing.kubeconfig", []string{"absolute path"}},
		{"no system pool", onExisting(edits{"persia:cluster": edits{"name": "persia", "existing": edits{"context": "c"}}}),
			"persia:cluster.existing.systemPool", []string{"Required value: must be one of the stack's node pools"}},
		{"a setting", onExisting(edits{"persia:cluster": edits{"name": "persia", "imageStreaming": true, "existing": edits{"context": "c", "systemPool": "loaders"}}}),
			"persia:cluster.imageStreaming", []string{"anything of an existing cluster"}},
		{"a disk", onExisting(edits{"persia:nodePools[2].disk": edits{"sizeGb": 200}}),
			"persia:nodePools[2].disk", []string{"anything of an existing pool"}},
		{"a resource without a domain", onExisting(edits{"persia:jobs[0].nnWorker.resources.limits.gpu": 1}),
			"persia:jobs[0].nnWorker.resources.limits[gpu]", []string{"not a resource of any node", "as nvidia.com/gpu"}},
		{"pods that do not fit", onExisting(edits{"persia:jobs[0].nnWorker.replicas": 3}),
			"persia:nodePools[0].nodes", []string{"write 3"}},
	}, "no system pool") // NATS runs there too
}
