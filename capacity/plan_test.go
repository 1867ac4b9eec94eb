package capacity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/gcp"
)

func machine(t *testing.T, name string) gcp.Machine {
	t.Helper()
	m, ok := gcp.Lookup(name)
	require.True(t, ok, name)
	return m
}

func TestQuotas(t *testing.T) {
	for name, c := range map[string]struct {
		usage Usage
		want  []string
	}{
		"family with a quota of its own": {Usage{Machine: machine(t, "n2-standard-8"), Nodes: 3, BootDisk: Disk{"pd-balanced", 100}},
			[]string{"global CPUS_ALL_REGIONS 24", "here INSTANCES 3", "here IN_USE_ADDRESSES 1", "here N2_CPUS 24", "here SSD_TOTAL_GB 300"}},
		"family that shares one": {Usage{Machine: machine(t, "e2-standard-4"), Nodes: 2, BootDisk: Disk{"pd-standard", 50}},
			[]string{"global CPUS_ALL_REGIONS 8", "here CPUS 8", "here DISKS_TOTAL_GB 100", "here INSTANCES 2", "here IN_USE_ADDRESSES 1"}},
		"newer family": {Usage{Machine: machine(t, "c4-standard-8"), Nodes: 1, BootDisk: Disk{"hyperdisk-balanced", 100}},
			[]string{"global CPUS_ALL_REGIONS 8", "here CPUS_PER_VM_FAMILY (vm_family C4) 8", "here HDB_TOTAL_GB 100", "here INSTANCES 1", "here IN_USE_ADDRESSES 1"}},
		"GPUs with a quota of their own": {Usage{Machine: machine(t, "a2-highgpu-8g"), Nodes: 2},
			[]string{"global CPUS_ALL_REGIONS 192", "global GPUS_ALL_REGIONS 16", "here A2_CPUS 192", "here INSTANCES 2", "here IN_USE_ADDRESSES 1", "here NVIDIA_A100_GPUS 16"}},
		"GPUs that share one": {Usage{Machine: machine(t, "a3-highgpu-8g"), Nodes: 1},
			[]string{"global CPUS_ALL_REGIONS 208", "global GPUS_ALL_REGIONS 8", "here CPUS 208", "here GPUS_PER_GPU_FAMILY (gpu_family NVIDIA_H100) 8", "here INSTANCES 1", "here IN_USE_ADDRESSES 1"}},
		"spot": {Usage{Machine: machine(t, "g2-standard-24"), Spot: true, Nodes: 1, LocalSSDs: 2},
			[]string{"global CPUS_ALL_REGIONS 24", "global GPUS_ALL_REGIONS 2", "here INSTANCES 1", "here IN_USE_ADDRESSES 1", "here PREEMPTIBLE_CPUS 24", "here PREEMPTIBLE_LOCAL_SSD_GB 750", "here PREEMPTIBLE_NVIDIA_L4_GPUS 2"}},
		"attached GPUs and local SSDs": {Usage{Machine: machine(t, "n1-standard-8").WithGPUs("nvidia-tesla-t4", 2), Nodes: 3, LocalSSDs: 1},
			[]string{"global CPUS_ALL_REGIONS 24", "global GPUS_ALL_REGIONS 6", "here CPUS 24", "here INSTANCES 3", "here IN_USE_ADDRESSES 1", "here LOCAL_SSD_TOTAL_GB 1125", "here NVIDIA_T4_GPUS 6"}},
	} {
		assert.Equal(t, c.want, texts(Quotas("here", []Usage{c.usage}, nil)), name)
	}
	assert.Equal(t, []string{"here DISKS_TOTAL_GB 10", "here IN_USE_ADDRESSES 1", "here SSD_TOTAL_GB 50"},
		texts(Quotas("here", nil, []Disk{{"pd-ssd", 20}, {"pd-balanced", 30}, {"pd-standard", 10}})), "of volumes")
}

func texts(quotas []Quota) []string {
	var texts []string
	for _, quota := range quotas {
		texts = append(texts, strings.Join([]string{quota.Region, quota.Name, fmt.Sprint(quota.Amount)}, " "))
	}
	return texts
}

func TestPlan(t *testing.T) {
	pools := []Pool{
		{Name: "a", Machine: machine(t, "n2-standard-8"), Node: node(7, 27, 0, 98), Nodes: 4,
			Pods: []Pods{{Name: "worker", Count: 9, Requests: cpus(2, 4)}, {Name: "none", Requests: cpus(1, 1)}}},
		{Name: "b", Machine: machine(t, "n2-standard-8"), Spot: true, Node: node(7, 27, 0, 98), Nodes: 1,
			Pods: []Pods{{Name: "giant", Count: 1, Requests: cpus(8, 4)}}},
	}
	plan := NewPlan(pools, func(_ gcp.Machine, spot bool) (Price, bool) {
		if spot {
			return Price{Hourly: 0.1}, true
		}
		return Price{Hourly: 0.4, Listed: true}, true
	})
	a, b := plan.Pools[0], plan.Pools[1]

	assert.True(t, a.Fits())
	assert.Equal(t, 3, a.Needed)
	assert.Equal(t, cpus(18, 36).MilliCPU, a.Used.MilliCPU)
	assert.Equal(t, cpus(3, 0).MilliCPU, a.Stranded.MilliCPU, "of the three nodes that are needed")
	assert.Equal(t, "CPU", a.BoundBy)
	assert.Len(t, a.Pods, 1, "pods of which there are none do not count")

	assert.False(t, b.Fits())
	assert.Equal(t, "giant", b.TooLarge[0].Name)

	assert.Equal(t, 5, plan.Nodes)
	require.NotNil(t, plan.HourlyCost)
	assert.InDelta(t, 4*0.4+0.1, *plan.HourlyCost, 1e-9)
	for _, text := range []string{"3 of 4", "64% of 28", "\na        9      3         worker\n",
		"\nIDLE IN  CPU  MEMORY  GPUS  LIMIT\na        3    45Gi          CPU\n",
		"1.60         list price\n", "0.10         of the stack file", "\nall      1.70\n", "not your contract"} {
		assert.Contains(t, plan.String(), text)
	}
	changed, others := plan.Since([]any{plan.Decisive()[0]})
	assert.True(t, strings.HasPrefix(changed, "COST OF"), changed)
	assert.True(t, strings.HasPrefix(others, "NODE POOL"), others)
	var all []any
	for _, table := range plan.Decisive() {
		all = append(all, table)
	}
	plan.Trainings = append(plan.Trainings, Training{Job: "train, measured", Measured: new(0.9)})
	changed, others = plan.Since(all)
	assert.Empty(t, changed, "what was measured is no change")
	assert.Contains(t, others, "train, measured")
	assert.Equal(t, "USD 1.70 an hour, 1,241 a month (+1.30 an hour)", plan.Cost(new(0.4)))
	assert.Equal(t, "USD 1.70 an hour, 1,241 a month", plan.Cost(plan.HourlyCost))
}

// TestUpgradedJobs: many names of jobs would make the table too wide.
func TestUpgradedJobs(t *testing.T) {
	for want, jobs := range map[string][]string{
		"2 of a\n":                        {"a"},
		"2 of ranking, retrieval\n":       {"ranking", "retrieval"},
		"2 of each of 20 jobs\n":          slices.Repeat([]string{"job"}, 20),
		"2 of " + strings.Repeat("n", 60): {strings.Repeat("n", 60)},
	} {
		plan := Plan{Pools: []PoolPlan{{Pool: Pool{Name: "a", Upgrade: Upgrade{Rounds: 2, Jobs: jobs}}}}}
		assert.Contains(t, plan.String(), want)
		assert.NotContains(t, plan.String(), "CHECKPOINTS OF", "a table without rows")
	}
}

func TestMissing(t *testing.T) {
	alike := []Pods{{Name: "a", Count: 10, Requests: cpus(3, 1)}}
	for name, c := range map[string]struct {
		nodes   int
		pods    []Pods
		missing int
		known   bool
	}{
		"enough":        {5, alike, 0, true},
		"one too few":   {4, alike, 2, true},
		"none":          {0, alike, 10, true},
		"several kinds": {4, append(alike, Pods{Name: "b", Count: 1, Requests: cpus(1, 1)}), 0, false},
	} {
		missing, known := PoolPlan{Pool: Pool{Node: node(7, 27, 0, 98), Nodes: c.nodes, Pods: c.pods}}.Missing()
		assert.Equal(t, c.missing, missing, name)
		assert.Equal(t, c.known, known, name)
	}
}

// TestShort: with more of the short resource, all pods find room.
func TestShort(t *testing.T) {
	pod, disk := cpus(3, 1), cpus(3, 1)
	disk.EphemeralBytes = 5 * GiB
	room := node(7, 27, 1, 98)
	room.EphemeralBytes = 9 * GiB
	for name, c := range map[string]struct {
		nodes int
		pods  []Pods
		want  string
	}{
		"CPU":               {1, []Pods{{Name: "a", Count: 3, Requests: pod}}, "CPU"},
		"memory":            {1, []Pods{{Name: "a", Count: 3, Requests: cpus(1, 10)}}, "memory"},
		"GPUs":              {1, []Pods{{Name: "a", Count: 2, Requests: gpus(1)}}, "GPUs"},
		"ephemeral storage": {1, []Pods{{Name: "a", Count: 2, Requests: disk}}, "ephemeral storage"},
		"an order":          {1, []Pods{{Name: "a", Count: 1, Requests: pod}, {Name: "b", Count: 2, Requests: pod}}, "CPU"},
		"two":               {1, []Pods{{Name: "a", Count: 3, Requests: cpus(3, 10)}}, ""},
		"nodes":             {1, []Pods{{Name: "a", Count: 2, Requests: pod, Apart: true}}, ""},
	} {
		plan := newPoolPlan(Pool{Node: room, Nodes: c.nodes, Pods: c.pods}, func(gcp.Machine, bool) (Price, bool) { return Price{}, false })
		assert.Equal(t, c.want, plan.Short(), name)
	}
}

func TestPodAddresses(t *testing.T) {
	for pods, want := range map[int]int{8: 16, 9: 32, 16: 32, 32: 64, 64: 128, 65: 256, 110: 256, 128: 256, 256: 512} {
		assert.Equal(t, want, PodAddresses(pods), "%d pods", pods)
	}
}

func TestEphemeralStorage(t *testing.T) {
	for _, c := range []struct{ diskGB, localSSDs, gib int }{
		{100, 0, 43}, {20, 0, 6}, {1000, 0, 746}, {100, 1, 287}, {100, 2, 600}, {100, 8, 2600},
	} {
		_, allocatable := EphemeralStorage(c.diskGB, c.localSSDs)
		assert.EqualValues(t, c.gib, allocatable/GiB, "%d GB and %d local SSDs", c.diskGB, c.localSSDs)
	}
}
