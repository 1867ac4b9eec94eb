package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/capacity"
	"persia/config"
	"persia/internal/testkit"
)

// TestCapacityRefuses checks the messages for stacks that do not fit their pools.
func TestCapacityRefuses(t *testing.T) {
	testkit.Refused(t, []testkit.Refusal{
		{"one node too few, alike", edits{"persia:jobs[0].nnWorker.replicas": 5},
			"persia:nodePools[0].nodes", []string{"2", "2 × a2-highgpu-8g hold 2 of 5 × nnWorker of train, 1 per node by GPUs; write 5"}},
		{"spare nodes", edits{"persia:nodePools[0].spareNodes": 1},
			"persia:nodePools[0].nodes", []string{"2 × a2-highgpu-8g are too few for 2 with pods and 1 spare; write 3"}},
		{"autoscaling counts at its maximum", edits{"persia:jobs[0].embeddingWorker.replicas": 5},
			"persia:nodePools[1].autoscaling.maxNodes", []string{"4 × n2-highmem-32 have too little", "5 × embeddingWorker of train", "; write 5"}},
		{"rounded up to whole zones", edits{
			"persia:cluster.zones":             []any{"us-central1-a", "us-central1-b"},
			"persia:nodePools[2].nodes":        2,
			"persia:jobs[0].nnWorker.replicas": 5,
		}, "persia:nodePools[0].nodes", []string{"write 6"}},
		{"several kinds of pods", edits{
			"persia:jobs[0].embeddingWorker.nodePool":         "ps",
			"persia:jobs[0].embeddingWorker.resources.limits": edits{"cpu": 40, "memory": "1Ti"},
		}, "persia:nodePools[2].nodes", []string{"1 × m1-ultramem-160 have too little room for 2 × embeddingWorker of train and 1 × embeddingParameterServer of train, which may come in any order; write 2"}},
		{"NATS kept apart", edits{"persia:nats.antiAffinity": true},
			"persia:cluster.systemPool.nodes", []string{"2 × e2-standard-4", "3 × NATS server", "write 3"}},
		{"system pool of tiny nodes", edits{"persia:cluster.systemPool.machineType": "n1-standard-1", "persia:nats.nodePool": "loaders"},
			"persia:cluster.systemPool.machineType", []string{`"n1-standard-1": has too little CPU for a pod of GKE's own`, "or write machineType: e2-standard-2"}},
		{"ephemeral storage", edits{"persia:jobs[0].dataloader.resources.limits[ephemeral-storage]": "200Gi"},
			"persia:nodePools[1].machineType", []string{"too little ephemeral storage for a pod of dataloader of train", "write disk.sizeGb: 610 for the pool loaders"}},
		{"a second node without the directory of the first", onOneNode.And(edits{"persia:jobs[0].nnWorker.replicas": 2, "persia:jobs[0].nnWorker.resources.limits[nvidia.com/gpu]": 4}),
			"persia:nodePools[0].nodes", []string{"1 × a2-ultragpu-8g have too little room for 2 × nnWorker of train"}},
		{"other machines, whose GPUs need no gpu", edits{"persia:jobs[0].nnWorker.resources.limits[nvidia.com/gpu]": 16},
			"persia:nodePools[0].machineType", []string{"too few GPUs for a pod of nnWorker of train", "or write machineType: a2-megagpu-16g, and remove gpu"}},
		{"more than the largest disk", edits{"persia:jobs[0].dataloader.resources.limits[ephemeral-storage]": "100Ti"},
			"persia:nodePools[1].machineType", []string{"request less, or assign it to another pool"}},
		{"more pods than a node may have", edits{"persia:nodePools[1].maxPodsPerNode": 12, "persia:jobs[0].dataloader.replicas": 20},
			"persia:nodePools[1].machineType", []string{"has too few pods for", "write maxPodsPerNode: 20 for the pool loaders"}},
		{"larger machines that cost less", edits{"persia:nodePools[1].machineType": "n2-standard-32", "persia:jobs[0].dataloader.replicas": 20, "persia:jobs[0].dataloader.resources.limits.memory": "30Gi"},
			"persia:nodePools[1].autoscaling.maxNodes", []string{"too little memory", "write machineType: n1-standard-64, for 12.16 instead of 13.98 USD an hour, or write 9"}},
	})
}

// TestPlan checks what a stack needs, including pods other than roles.
func TestPlan(t *testing.T) {
	stack := testkit.Must(testkit.Load(t, edits{"persia:machineTypes": edits{
		"a2-highgpu-8g":   edits{"hourlyPrice": 30},
		"n2-highmem-32":   edits{"hourlyPrice": 2.5},
		"m1-ultramem-160": edits{"hourlyPrice": 25},
		"e2-standard-4":   edits{"hourlyPrice": 0.25},
	}}))(t)
	plan := stack.Plan()

	needed := map[string][]int{}
	for _, pool := range plan.Pools {
		needed[pool.Name] = []int{pool.Needed, pool.Nodes}
	}
	assert.Equal(t, map[string][]int{"system": {1, 2}, "training": {2, 2}, "loaders": {3, 4}, "ps": {1, 1}}, needed)
	assert.Equal(t, 9, plan.Nodes)
	assert.Equal(t, 2+8+2+1+3+2+1+1+1, plan.Pods, "roles, NATS, GKE's own, operator, gateway, completion")
	require.NotNil(t, plan.HourlyCost)
	assert.InDelta(t, 2*30+4*2.5+25+2*0.25, *plan.HourlyCost, 1e-9)
	assert.Contains(t, plan.Quotas, capacity.Quota{Name: "NVIDIA_A100_GPUS", Region: "us-central1", Amount: 16})
	assert.Contains(t, plan.Quotas, capacity.Quota{Name: "M1_CPUS", Region: "us-central1", Amount: 160})
	leaves := stack.Plan(config.Pool{Name: "old", MachineType: "m1-ultramem-160", Nodes: new(2)})
	assert.Contains(t, leaves.Quotas, capacity.Quota{Name: "M1_CPUS", Region: "us-central1", Amount: 3 * 160})
	assert.Equal(t, []capacity.Range{
		{Name: "nodes", CIDR: "10.0.0.0/20", Needed: 13, Size: 4096},
		{Name: "pods", CIDR: "10.64.0.0/14", Needed: 9 * 256, Size: 1 << 18},
	}, plan.Ranges)
}

// TestPlanOfGateways checks that a plan has one pod for both the gateway and the completion of a JobSet,
// and one pod for each of them with StatefulSets.
func TestPlanOfGateways(t *testing.T) {
	for name, c := range map[string]struct {
		edits edits
		pods  int
	}{
		"StatefulSets":             {nil, 2},
		"StatefulSets, no metrics": {edits{"persia:jobs[0].enableMetrics": false}, 1},
		"JobSet":                   {edits{"persia:jobs[0].engine": "jobset"}, 1},
		"JobSet, no metrics":       {edits{"persia:jobs[0].engine": "jobset", "persia:jobs[0].enableMetrics": false}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			stack := testkit.Must(testkit.Load(t, c.edits))(t)
			others := 2 + 8 + 2 + 1 + 3 + 2 + 1 // roles, NATS, GKE's own, NATS operator
			if stack.InstallsJobSet() {
				others++
			}
			assert.Equal(t, others+c.pods, stack.Plan().Pods)
		})
	}
}

// TestPlanOfUpgrades checks what an upgrade of each pool needs and interrupts. Replicas that lose their node end the
// attempt of their job anyway, so only pools with other pods get additional nodes.
func TestPlanOfUpgrades(t *testing.T) {
	none := func(rounds int) capacity.Upgrade {
		return capacity.Upgrade{Unavailable: 1, Rounds: rounds, Jobs: []string{"train"}}
	}
	for name, c := range map[string]struct {
		edits edits
		want  map[string]capacity.Upgrade
		quota string
	}{
		"roles only": {nil, map[string]capacity.Upgrade{
			"system": {Additional: 1, Rounds: 2}, "training": none(2), "loaders": none(4), "ps": none(1),
		}, "M1_CPUS 160, N2_CPUS 128"},
		"NATS beside roles": {edits{"persia:nats.nodePool": "loaders"}, map[string]capacity.Upgrade{
			"system": {Additional: 1, Rounds: 2}, "training": none(2), "ps": none(1),
			"loaders": {Additional: 1, Rounds: 4, Jobs: []string{"train"}},
		}, "M1_CPUS 160, N2_CPUS 160"},
		"a surge that the stack file asks for": {edits{"persia:nodePools[2].upgrade": edits{"maxSurge": 1}}, map[string]capacity.Upgrade{
			"system": {Additional: 1, Rounds: 2}, "training": none(2), "loaders": none(4),
			"ps": {Additional: 1, Rounds: 1, Jobs: []string{"train"}},
		}, "M1_CPUS 320, N2_CPUS 128"},
		"a suspended job": {edits{"persia:jobs[0].suspend": true}, map[string]capacity.Upgrade{
			"system": {Additional: 1, Rounds: 2}, "training": {Unavailable: 1, Rounds: 2},
			"loaders": {Unavailable: 1, Rounds: 4}, "ps": {Unavailable: 1, Rounds: 1},
		}, "M1_CPUS 160, N2_CPUS 128"},
	} {
		t.Run(name, func(t *testing.T) {
			stack := testkit.Must(testkit.Load(t, c.edits))(t)
			plan, got := stack.Plan(), map[string]capacity.Upgrade{}
			for _, pool := range plan.Pools {
				got[pool.Name] = pool.Upgrade
			}
			assert.Equal(t, c.want, got)
			var quotas []string
			for _, quota := range plan.Quotas {
				if quota.Name == "M1_CPUS" || quota.Name == "N2_CPUS" {
					quotas = append(quotas, fmt.Sprint(quota.Name, " ", quota.Amount))
				}
			}
			assert.Equal(t, c.quota, strings.Join(quotas, ", "))
		})
	}
}

// TestPlanWithoutAPrice: M1 machines have no list price.
func TestPlanWithoutAPrice(t *testing.T) {
	stack := testkit.Must(testkit.Load(t, edits{"persia:machineTypes": edits{"a2-highgpu-8g": edits{"hourlyPrice": 30}}}))(t)
	plan := stack.Plan()
	assert.Nil(t, plan.HourlyCost, "part of the cost would pass for all of it")
	assert.Equal(t, "cost unknown: no price of m1-ultramem-160 (`bin/persia prices`)", plan.Cost(nil))
	assert.Contains(t, plan.String(), `
COST OF   USD AN HOUR  PRICE
system    0.27         list price
training  60.00        of the stack file
loaders   8.38         list price
ps        unknown      no list price: set hourlyPrice of m1-ultramem-160
List prices of 2025-03-06: not your contract`)
}

// TestTrainings: two nodes that fail every 100 hours and one that does every 50 interrupt the job every 25 hours.
func TestTrainings(t *testing.T) {
	types := edits{
		"a2-highgpu-8g":   edits{"hourlyPrice": 30, "hoursBetweenFailures": 100},
		"n2-highmem-32":   edits{"spotHoursBetweenFailures": 1},
		"m1-ultramem-160": edits{"hourlyPrice": 25, "hoursBetweenFailures": 50},
	}
	// Two of three nodes for the only embedding parameter server are empty.
	stack, err := testkit.Load(t, edits{"persia:machineTypes": types, "persia:nodePools[2].nodes": 3,
		"persia:jobs[0].checkpointSeconds": 360, "persia:jobs[0].restartSeconds": 900})
	require.NoError(t, err)
	require.Len(t, stack.Plan().Trainings, 1)
	training := stack.Plan().Trainings[0]
	assert.Equal(t, "train", training.Job)
	assert.InDelta(t, 0.1, training.Checkpoint, 1e-9)
	assert.InDelta(t, 0.25, training.Restart, 1e-9)
	assert.InDelta(t, 25, training.BetweenFailures, 1e-9)
	require.NotNil(t, training.HourlyCost)
	assert.InDelta(t, 2*30+4*2.096224+3*25, *training.HourlyCost, 1e-6)
	assert.Contains(t, stack.Plan().String(), `
CHECKPOINTS OF  A FAILURE EVERY  BEST INTERVAL  USEFUL HOURS  COST OF A USEFUL HOUR
train           25.0 h           130 min        90%           158.59 USD
`)

	for name, c := range map[string]edits{
		"no failures":           {"persia:jobs[0].checkpointSeconds": 360},
		"no time":               {"persia:machineTypes": types},
		"suspended":             {"persia:machineTypes": types, "persia:jobs[0].checkpointSeconds": 360, "persia:jobs[0].suspend": true},
		"other machines' hours": {"persia:machineTypes": edits{"e2-standard-4": edits{"hoursBetweenFailures": 100}}, "persia:jobs[0].checkpointSeconds": 360},
	} {
		stack := testkit.Must(testkit.Load(t, c))(t)
		assert.NotContains(t, stack.Plan().String(), "CHECKPOINTS", name)
	}
}

// TestSpotPlan checks the price of spot nodes and how often they fail.
func TestSpotPlan(t *testing.T) {
	stack := testkit.Must(testkit.Load(t, edits{
		"persia:machineTypes": edits{"a2-highgpu-8g": edits{
			"hourlyPrice": 30, "hoursBetweenFailures": 100, "spotHourlyPrice": 10, "spotHoursBetweenFailures": 8}},
		"persia:nodePools[0].spot":         true,
		"persia:jobs[0].checkpointSeconds": 360,
	}))(t)
	plan := stack.Plan()
	require.NotNil(t, plan.Pools[1].HourlyCost)
	assert.InDelta(t, 2*10, *plan.Pools[1].HourlyCost, 1e-9)
	require.Len(t, plan.Trainings, 1)
	assert.InDelta(t, 8.0/2, plan.Trainings[0].BetweenFailures, 1e-9)
}

// TestDescribedMachine checks the plan for a machine type that is not in the catalogue.
func TestDescribedMachine(t *testing.T) {
	stack := testkit.Must(testkit.Load(t, edits{
		"persia:machineTypes":                      edits{"x9-highgpu-4g": edits{"cpus": 96, "memory": "1Ti", "gpu": edits{"type": "nvidia-x9", "count": 4}}},
		"persia:nodePools[0]":                      edits{"name": "training", "machineType": "x9-highgpu-4g", "disk": edits{"type": "hyperdisk-balanced"}, "nodes": 2, "gpu": edits{"type": "nvidia-x9", "count": 4}},
		"persia:jobs[0].nnWorker.resources.limits": edits{"cpu": 40, "memory": "600Gi", "nvidia.com/gpu": 2},
	}))(t)
	plan := stack.Plan()
	assert.Equal(t, 2, plan.Pools[1].Needed, "a node has memory for one of the two nn-workers")
	assert.Contains(t, plan.Quotas, capacity.Quota{Name: "CPUS_PER_VM_FAMILY (vm_family X9)", Region: "us-central1", Amount: 192})
	assert.Contains(t, plan.Quotas, capacity.Quota{Name: "GPUS_PER_GPU_FAMILY (gpu_family NVIDIA_X9)", Region: "us-central1", Amount: 8})
}
