package capacity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cpus returns the resources of a node or a pod with vCPUs and GiB of memory.
func cpus(cpu, gib float64) Resources {
	return Resources{MilliCPU: int64(cpu * 1000), MemoryBytes: int64(gib * GiB), Pods: 1}
}

func node(cpu, gib float64, gpus, pods int64) Resources {
	r := cpus(cpu, gib)
	r.GPUs, r.Pods = gpus, pods
	return r
}

func gpus(n int64) Resources { return Resources{MilliCPU: 100, GPUs: n, Pods: 1} }

func TestNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		node Resources
		pods []Pods
		want int
	}{
		"nothing":                  {node(8, 32, 0, 110), nil, 0},
		"one pod":                  {node(8, 32, 0, 110), []Pods{{"a", 1, cpus(1, 1), 0, false}}, 1},
		"alike, CPU binds":         {node(8, 32, 0, 110), []Pods{{"a", 17, cpus(2, 1), 0, false}}, 5},
		"alike, memory binds":      {node(8, 32, 0, 110), []Pods{{"a", 9, cpus(1, 10), 0, false}}, 3},
		"alike, number binds":      {node(64, 256, 0, 8), []Pods{{"a", 17, cpus(1, 1), 0, false}}, 3},
		"alike, exactly full":      {node(8, 32, 0, 110), []Pods{{"a", 16, cpus(2, 8), 0, false}}, 4},
		"one node of many kinds":   {node(8, 32, 0, 110), []Pods{{"a", 1, cpus(4, 8), 0, false}, {"b", 2, cpus(1, 8), 0, false}, {"c", 1, cpus(2, 8), 0, false}}, 1},
		"kept apart":               {node(64, 256, 0, 110), []Pods{{"a", 5, cpus(1, 1), 0, true}}, 5},
		"kept apart beside others": {node(8, 32, 0, 110), []Pods{{"a", 3, cpus(1, 1), 0, true}, {"b", 4, cpus(7.5, 1), 0, false}}, 7},
		// A small pod on a node leaves no room for a large one, and none of them moves.
		"small ones in the way of large ones": {node(32, 128, 0, 110), []Pods{
			{"large", 10, cpus(28, 1), 0, false}, {"small", 10, cpus(5, 1), 0, false}}, 20},
		// Large ones make room for themselves, and small ones go into what is left.
		"large ones first": {node(32, 128, 0, 110), []Pods{{"large", 10, cpus(20, 1), 2, false}, {"small", 10, cpus(5, 1), 1, false}}, 10},
		"large ones first, and fill their nodes": {node(32, 128, 0, 110), []Pods{
			{"large", 10, cpus(28, 1), 2, false}, {"small", 10, cpus(5, 1), 1, false}}, 12},
		"GPU fragments": {node(96, 512, 8, 110), []Pods{{"whole", 2, gpus(8), 0, false}, {"half", 3, gpus(4), 0, false}}, 5},
		"GPU fragments, whole nodes first": {node(96, 512, 8, 110), []Pods{
			{"whole", 2, gpus(8), 1, false}, {"half", 3, gpus(4), 0, false}}, 4},
	} {
		assert.Equal(t, c.want, Pool{Node: c.node, Pods: c.pods}.Needed(), name)
	}
}

// TestNeededAgainstSearch compares with a search of all orders and placements: on the nodes needed none leaves a pod
// pending, and on two fewer one does. For pods that are alike, on one fewer.
func TestNeededAgainstSearch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	exact := 0
	const rounds = 400
	for round := range rounds {
		pool := Pool{Node: node(float64(4+random.IntN(6)), float64(4+random.IntN(6)), 0, 110)}
		for kind := range 1 + random.IntN(3) {
			pool.Pods = append(pool.Pods, Pods{
				Name: fmt.Sprint(kind), Count: 1 + random.IntN(4),
				Requests: cpus(float64(1+random.IntN(4)), float64(1+random.IntN(4))), Priority: random.IntN(2), Apart: random.IntN(6) == 0,
			})
		}
		needed := pool.Needed()
		require.False(t, leavesPending(pool, slices.Repeat([]Resources{pool.Node}, needed)), "round %d: %d nodes are too few for %+v", round, needed, pool)
		if needed == 1 || leavesPending(pool, slices.Repeat([]Resources{pool.Node}, needed-1)) {
			exact++
			continue
		}
		require.Greater(t, len(pool.Pods), 1, "round %d: %d nodes are one too many for %+v", round, needed, pool)
		require.True(t, leavesPending(pool, slices.Repeat([]Resources{pool.Node}, needed-2)), "round %d: %d nodes are two too many for %+v", round, needed, pool)
	}
	t.Logf("%d of %d exact, the others one too many", exact, rounds)
	assert.Greater(t, exact, rounds*9/10)
}

// TestNeededOfLists: where all nodes are at least as large as the one that the plan counts, the nodes needed are enough.
func TestNeededOfLists(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 500 {
		var pool Pool
		size := func() float64 { return float64(4 + random.IntN(8)) }
		shapes := []Resources{node(size(), size(), 0, 110), node(size(), size(), 0, 110)}
		pool.Node = shapes[0].AtMost(shapes[1])
		pool.Rungs = []Rung{{Node: shapes[0]}, {Node: shapes[1]}}
		for kind := range 1 + random.IntN(3) {
			pool.Pods = append(pool.Pods, Pods{Name: fmt.Sprint(kind), Count: 1 + random.IntN(4),
				Requests: cpus(float64(1+random.IntN(4)), float64(1+random.IntN(4))), Priority: random.IntN(2), Apart: random.IntN(6) == 0})
		}
		nodes := make([]Resources, pool.Needed())
		for i := range nodes {
			nodes[i] = shapes[random.IntN(2)]
		}
		require.False(t, leavesPending(pool, nodes), "round %d: %+v are too few for %+v", round, nodes, pool)
	}
}

// leavesPending reports whether some placement of the pods that outrank a kind leaves no room for it on the nodes.
func leavesPending(pool Pool, nodes []Resources) bool {
	for i, pods := range pool.Pods {
		left := make([]int, len(pool.Pods))
		for j, other := range pool.Pods {
			if other.Priority >= pods.Priority {
				left[j] = other.Count
			}
		}
		left[i]--
		if canBlock(pool, i, left, nodes) {
			return true
		}
	}
	return false
}

// canBlock tries every way in which the pods left can block all nodes, one after the other, for a pod of kind i.
func canBlock(pool Pool, i int, left []int, nodes []Resources) bool {
	if len(nodes) == 0 {
		return true
	}
	pool.Node = nodes[0]
	var fill func(kind int, load Resources, on []int) bool
	fill = func(kind int, load Resources, on []int) bool {
		if !takes(pool, i, load, on) {
			return canBlock(pool, i, left, nodes[1:])
		}
		for next := kind; next < len(left); next++ {
			if left[next] == 0 || !takes(pool, next, load, on) {
				continue
			}
			left[next]--
			on[next]++
			found := fill(next, load.Plus(pool.Pods[next].Requests), on)
			left[next]++
			on[next]--
			if found {
				return true
			}
		}
		return false
	}
	return fill(0, Resources{}, make([]int, len(left)))
}

func takes(pool Pool, kind int, load Resources, on []int) bool {
	return fit(pool.Node.Minus(load), pool.Pods[kind].Requests) > 0 && !(pool.Pods[kind].Apart && on[kind] > 0)
}

// TestNeededOfManyKinds falls back on a bound that is sound.
func TestNeededOfManyKinds(t *testing.T) {
	pool := Pool{Node: node(64, 512, 0, 110)}
	total := Resources{}
	for i := range 40 {
		pods := Pods{Name: fmt.Sprint(i), Count: 5, Requests: cpus(0.5+float64(i)/100, 1+float64(i)/10)}
		pool.Pods = append(pool.Pods, pods)
		total = total.Plus(pods.Requests.Times(pods.Count))
	}
	least := int((total.MilliCPU + pool.Node.MilliCPU - 1) / pool.Node.MilliCPU)
	needed := pool.Needed()
	assert.GreaterOrEqual(t, needed, least)
	assert.LessOrEqual(t, needed, 4*least)
}

func TestNeededIgnoresTheOrderOfKinds(t *testing.T) {
	pool := Pool{Node: node(32, 128, 0, 110), Pods: []Pods{
		{"a", 7, cpus(9, 1), 0, false}, {"b", 11, cpus(4, 20), 0, false}, {"c", 5, cpus(13, 30), 1, false},
	}}
	want := pool.Needed()
	slices.Reverse(pool.Pods)
	assert.Equal(t, want, pool.Needed())
}
