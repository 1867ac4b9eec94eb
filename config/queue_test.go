package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/capacity"
	"persia/config"
	"persia/internal/testkit"
)

// inQueue makes the job of the base stack wait in the queue of one of two teams.
var inQueue = edits{
	"persia:queue.teams":    []any{edits{"name": "ranking"}, edits{"name": "ads"}},
	"persia:jobs[0].engine": "jobset",
	"persia:jobs[0].queue":  "ranking",
}

// teams are two teams, and the nodes of the first.
func teams(nodes edits) []any {
	return []any{edits{"name": "ranking", "nodes": nodes}, edits{"name": "ads"}}
}

func TestQueuesRefused(t *testing.T) {
	testkit.Refused(t, []testkit.Refusal{
		{"no queues", edits{"persia:jobs[0].engine": "jobset", "persia:jobs[0].queue": "ranking"}, "persia:jobs[0].queue", []string{"the stack has no queues; write persia:queue.teams"}},
		{"another team", inQueue.And(edits{"persia:jobs[0].queue": "adds"}), "persia:jobs[0].queue", []string{`must be the name of a team in persia:queue.teams; write "ranking", or write "ads"`}},
		{"another engine", inQueue.And(edits{"persia:jobs[0].engine": "statefulset"}), "persia:jobs[0].queue", []string{"requires engine: jobset"}},
		{"unknown priority", inQueue.And(edits{"persia:jobs[0].priority": "urgent"}), "persia:jobs[0].priority", []string{"must be the name of a priority in persia:queue.priorities"}},
		{"priority alone", edits{"persia:jobs[0].priority": "urgent"}, "persia:jobs[0].priority", []string{"applies only to a job in a queue"}},
		{"same team twice", inQueue.And(edits{"persia:queue.teams": []any{edits{"name": "ranking"}, edits{"name": "ranking"}}}), "persia:queue.teams[1].name", []string{"already used by persia:queue.teams[0]"}},
		{"name", inQueue.And(edits{"persia:queue.teams": []any{edits{"name": "ranking"}, edits{"name": "Ads"}}}), "persia:queue.teams[1].name", []string{"lower case"}},
		{"pool without jobs", inQueue.And(edits{"persia:queue.teams": teams(edits{"system": 1})}), "persia:queue.teams[0].nodes[system]", []string{"no job that waits in a queue runs on the pool system; there are loaders, ps and training"}},
		{"negative nodes", inQueue.And(edits{"persia:queue.teams": teams(edits{"ps": -1})}), "persia:queue.teams[0].nodes[ps]", []string{"must not be negative"}},
		{"more nodes than are", inQueue.And(edits{"persia:queue.teams": teams(edits{"training": 3})}), "persia:queue.teams", []string{"3", "nodes of the pool training belong to teams, but it has 2 for queues", "write a smaller number"}},
		{"spare nodes", inQueue.And(edits{"persia:nodePools[0].nodes": 3, "persia:nodePools[0].spareNodes": 1, "persia:queue.teams": teams(edits{"training": 3})}), "persia:queue.teams", []string{"it has 2 for queues"}},
		{"nodes that NATS needs", inQueue.And(edits{"persia:nats.nodePool": "loaders", "persia:queue.teams": teams(edits{"loaders": 4})}), "persia:queue.teams", []string{"pool loaders", "it has 3 for queues"}},
		{"too few nodes", inQueue.And(edits{"persia:queue.teams": teams(edits{"training": 1})}), "persia:jobs[0].queue", []string{"the job would wait forever: the teams together have 1 node of the pool training"}},
		{"large priority", inQueue.And(edits{"persia:queue.priorities": []any{edits{"name": "a", "value": 2_000_000_000}}}), "persia:queue.priorities[0].value", []string{"1000000000"}},
		{"no time to start", inQueue.And(edits{"persia:queue.startMinutes": 2000}), "persia:queue.startMinutes", []string{"1440"}},
		{"Kueue of a new cluster", inQueue.And(edits{"persia:queue.existing": true}), "persia:queue.existing", []string{"a cluster that the stack creates has no Kueue"}},
		{"preemption", inQueue.And(edits{"persia:queue.withinTeam": "Always"}), "persia:queue.withinTeam", []string{"LowerPriority"}},
	})
}

// onQueuedPool makes the nodes of the nn-workers come for a request.
var onQueuedPool = inQueue.And(edits{
	"persia:nodePools[0].nodes":              nil,
	"persia:nodePools[0].autoscaling":        edits{"minNodes": 0, "maxNodes": 2},
	"persia:nodePools[0].queuedProvisioning": true,
})

// onQueuedPools makes them come from one of two pools.
var onQueuedPools = onQueuedPool.And(edits{
	"persia:nodePools[3]":              queuedPool(edits{"name": "more", "machineType": "a2-highgpu-8g"}),
	"persia:jobs[0].nnWorker.nodePool": []any{"training", "more"},
})

// TestQueuedProvisioning: only the nn-workers of a job that Kueue can stop ask for nodes.
func TestQueuedProvisioning(t *testing.T) {
	refused := []string{"has queuedProvisioning", "only nn-workers of a job with engine: jobset and queue", "choose another pool"}
	testkit.Refused(t, []testkit.Refusal{
		{"no queue", onQueuedPool.And(edits{"persia:jobs[0].queue": ""}), "persia:jobs[0].nnWorker.nodePool", refused},
		{"another engine", onQueuedPool.And(edits{"persia:jobs[0].queue": "", "persia:jobs[0].engine": "statefulset"}), "persia:jobs[0].nnWorker.nodePool", refused},
		{"dataloaders", onQueuedPool.And(edits{"persia:jobs[0].dataloader.nodePool": "training"}), "persia:jobs[0].dataloader.nodePool", refused},
		{"servers", onQueuedPool.And(edits{"persia:jobs[0].embeddingParameterServer.nodePool": "training"}), "persia:jobs[0].embeddingParameterServer.nodePool", refused},
		{"a list, no queue", onQueuedPools.And(edits{"persia:jobs[0].queue": ""}), "persia:jobs[0].nnWorker.nodePool[1]", refused},
	}, "a list, no queue")
	for name, stack := range map[string]edits{"one pool": onQueuedPool, "a list": onQueuedPools} {
		assert.True(t, testkit.Must(testkit.Load(t, stack))(t).AsksForNodes(), name)
	}
	assert.False(t, testkit.Must(testkit.Load(t, inQueue))(t).AsksForNodes())
}

// TestQueuedJobsTakeTurns checks that a pool must hold the largest of the jobs that wait in queues,
// while all jobs that wait in none must fit together.
func TestQueuedJobsTakeTurns(t *testing.T) {
	one := testkit.Must(testkit.Load(t, inQueue))(t)
	two, err := config.Load(twoJobs(t, inQueue.And(edits{"persia:jobs[1].engine": "jobset", "persia:jobs[1].queue": "ranking"})), nil)
	require.NoError(t, err)
	for _, pool := range []int{1, 2, 3} { // after the system pool
		assert.Equal(t, one.Plan().Pools[pool].Needed, two.Plan().Pools[pool].Needed, one.Plan().Pools[pool].Name)
	}
	_, err = testkit.Load(t, edits{"persia:jobs[0].nnWorker.replicas": 4})
	require.ErrorContains(t, err, "2 × a2-highgpu-8g hold 2 of 4")
}

// TestQuotas checks what belongs to teams. A pool whose replicas are alike counts in whole
// replicas, so what the quota admits finds room.
func TestQuotas(t *testing.T) {
	replica := capacity.Resources{MilliCPU: 80_000, MemoryBytes: 600 * capacity.GiB, GPUs: 8, Pods: 1}
	for name, c := range map[string]struct {
		teams []any
		// nodes of the pool of nn-workers, one replica on each.
		ranking, ads int
	}{
		"equal shares":         {teams(nil), 1, 1},
		"written":              {teams(edits{"training": 2}), 2, 0},
		"for the other team":   {[]any{edits{"name": "ranking"}, edits{"name": "ads", "nodes": edits{"training": 2}}}, 0, 2},
		"one team owns it all": {[]any{edits{"name": "ranking"}}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := testkit.Must(testkit.Load(t, inQueue.And(edits{"persia:queue.teams": c.teams})))(t)
			require.Equal(t, []string{"training", "loaders", "ps"}, s.QueuePools())
			for i, want := range []int{c.ranking, c.ads}[:len(c.teams)] {
				assert.Equal(t, replica.Times(want), s.Quotas(s.Queue.Teams[i])[0], s.Queue.Teams[i].Name)
			}
		})
	}
	s := testkit.Must(testkit.Load(t, inQueue.And(edits{"persia:nodePools[0].nodes": 5, "persia:nodePools[0].spareNodes": 3})))(t)
	assert.Equal(t, replica, s.Quotas(s.Queue.Teams[0])[0], "spare nodes belong to no team")
	s = testkit.Must(testkit.Load(t, inQueue))(t)
	ps := s.Quotas(s.Queue.Teams[0])[2].Plus(s.Quotas(s.Queue.Teams[1])[2])
	assert.Equal(t, int64(80_000), ps.MilliCPU, "one server of 80 CPUs and not the rest of the node")
}

// TestUncounted checks that quotas cover all that queued jobs request: Kueue never admits a job that
// requests something else. Only nodes of an existing cluster may have other resources.
func TestUncounted(t *testing.T) {
	resources := func(more edits) edits {
		return edits{"limits": edits{"cpu": "10", "memory": "10Gi"}.And(more)}
	}
	s := testkit.Must(testkit.Load(t, onExisting(inQueue.And(edits{
		"persia:jobs[0].nnWorker.resources":   resources(edits{"nvidia.com/gpu": 8, "ephemeral-storage": "10Gi", "hugepages-2Mi": "64Mi"}),
		"persia:jobs[0].dataloader.replicas":  3,
		"persia:jobs[0].dataloader.resources": resources(edits{"example.com/fpga": 2}),
	}))))(t)
	sums := map[string]string{}
	for name, sum := range s.Uncounted() {
		sums[string(name)] = sum.String()
	}
	assert.Equal(t, map[string]string{"ephemeral-storage": "20Gi", "hugepages-2Mi": "128Mi", "example.com/fpga": "6"}, sums)
}

// TestQueueControllers checks which controllers a stack installs.
func TestQueueControllers(t *testing.T) {
	for name, c := range map[string]struct {
		edits         edits
		jobSet, kueue bool
	}{
		"neither":                {nil, false, false},
		"a JobSet in no queue":   {edits{"persia:jobs[0].engine": "jobset"}, true, false},
		"queues":                 {inQueue, true, true},
		"queues without a job":   {edits{"persia:queue.teams": teams(nil)}, true, true},
		"of an existing cluster": {onExisting(inQueue).And(edits{"persia:queue.existing": true}), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := testkit.Must(testkit.Load(t, c.edits))(t)
			assert.Equal(t, c.jobSet, s.InstallsJobSet(), "JobSet")
			assert.Equal(t, c.kueue, s.InstallsKueue(), "Kueue")
		})
	}
}
