package config_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"

	"persia/internal/testkit"
)

// listed has the nn-workers try a spot pool, and a pool of another zone, after their own.
var listed = edits{
	"persia:nodePools[3]": edits{"name": "spot", "machineType": "a2-highgpu-8g", "spot": true, "autoscaling": edits{"minNodes": 0, "maxNodes": 4}},
	"persia:nodePools[4]": edits{"name": "other", "machineType": "a2-highgpu-8g", "zones": []any{"us-central1-c"},
		"autoscaling": edits{"minNodes": 0, "maxNodes": 2}, "imageType": "UBUNTU_CONTAINERD"},
	"persia:jobs[0].nnWorker.nodePool": []any{"training", "spot", "other"},
}

// alone is a pool that only the list has.
func alone(pool edits) edits {
	return listed.And(edits{"persia:nodePools[5]": pool, "persia:jobs[0].nnWorker.nodePool": []any{"training", "spot", pool["name"]}})
}

func TestPoolListRefused(t *testing.T) {
	const at = "persia:jobs[0].nnWorker.nodePool"
	testkit.Refused(t, []testkit.Refusal{
		{"unknown", listed.And(edits{at: []any{"training", "spots"}}), at + "[1]", []string{`"spots"`, "must be one of the stack's node pools"}},
		{"unknown beside one of another role", edits{"persia:jobs[0].dataloader.nodePool": []any{"loaders", "loader"}}, "persia:jobs[0].dataloader.nodePool[1]", []string{`"loader"`, "must be one of"}},
		{"no name", listed.And(edits{at: []any{"training", 7}}), at, []string{"must be a string", "it is a list"}},
		{"twice", listed.And(edits{at: []any{"training", "spot", "training"}}), at + "[2]", []string{`"training"`, "is twice in the list; remove one"}},
		{"another GPU", alone(edits{"name": "l4", "machineType": "g2-standard-96", "nodes": 1}), at + "[2]",
			[]string{`"l4"`, "has 8 × nvidia-l4, and training has 8 × nvidia-tesla-a100", "write pools with the same GPUs"}},
		{"fewer GPUs", alone(edits{"name": "half", "machineType": "a2-highgpu-4g", "nodes": 2}), at + "[2]", []string{`"half"`, "has 4 × nvidia-tesla-a100"}},
		{"no GPUs", listed.And(edits{at: []any{"training", "ps"}, "persia:jobs[0].embeddingParameterServer.nodePool": "loaders"}), at + "[1]", []string{`"ps"`, "has no GPUs"}},
		{"less memory than a replica asks", edits{"persia:nodePools[3]": edits{"name": "small", "machineType": "n2-standard-128", "nodes": 1},
			"persia:jobs[0].embeddingParameterServer.nodePool": []any{"ps", "small"}}, "persia:nodePools[3].machineType",
			[]string{`"n2-standard-128"`, "has too little room for a pod of embeddingParameterServer of train, which may run on each pool of [ps, small]; request less"}},
		{"too few nodes", edits{"persia:nodePools[0].nodes": 1, "persia:nodePools[3]": edits{"name": "more", "machineType": "a2-highgpu-8g", "autoscaling": edits{"minNodes": 0, "maxNodes": 2}},
			"persia:jobs[0].nnWorker.replicas": 4, "persia:jobs[0].nnWorker.nodePool": []any{"training", "more"}}, "persia:nodePools[3].autoscaling.maxNodes",
			[]string{"the pools [training, more] have 3 nodes together, and need 4 in the worst case; write 3"}},
		{"a disk elsewhere", listed.And(edits{"persia:storage[0].gcsFuse": nil, "persia:storage[0].persistentDisk": edits{"disk": "d", "zones": []any{"us-central1-a"}}}),
			"persia:storage[0].persistentDisk.zones", []string{"pool other, whose roles mount the volume, also has nodes in us-central1-c, which cannot reach the disk"}},
		{"another list", listed.And(edits{"persia:jobs[0].dataloader.nodePool": []any{"loaders", "ps"}}), "persia:jobs[0].dataloader.nodePool[0]",
			[]string{`"loaders"`, "is also used as nodePool: loaders", "choose another pool, or write [loaders, ps] in all roles"}},
		{"a comma in a name", listed.And(edits{at: "training,spot"}), at, []string{`"training,spot"`, "must be one name, or a list like [a, b]"}},
		{"a comma for NATS", edits{"persia:nats.nodePool": "ps,loaders"}, "persia:nats.nodePool", []string{`"ps,loaders"`, "must be one of the stack's node pools"}},
		{"queued provisioning", onQueuedPools.And(edits{"persia:nodePools[3].queuedProvisioning": nil}), at + "[1]",
			[]string{`"more"`, "cannot be in a list with training, because GKE adds nodes to pools with queuedProvisioning only on request", "none that has"}},
		{"PERSIA's operator", listed.And(edits{"persia:jobs[0].engine": "operator"}), at + "[0]", []string{"lets no pod choose its nodes"}},
		{"a list for NATS", edits{"persia:nats.nodePool": []any{"ps", "loaders"}}, "persia:nats.nodePool", []string{"must be a string", "it is a list"}},
	}, "no GPUs", "a disk elsewhere", "a comma in a name", "another list", "PERSIA's operator")
}

// TestPoolList: the plan sees one pool, whose pods select its compute class.
func TestPoolList(t *testing.T) {
	s := testkit.Must(testkit.Load(t, listed.And(edits{"persia:machineTypes": edits{"a2-highgpu-8g": edits{"hourlyPrice": 30, "spotHourlyPrice": 10}}})))(t)
	var names []string
	for _, pool := range s.Plan().Pools {
		names = append(names, pool.Name)
		if len(pool.Rungs) > 1 {
			// Two nodes are always there. The plan needs two.
			assert.Equal(t, []any{8, 2, 60.0, 60.0}, []any{pool.Nodes, pool.Needed, *pool.LeastHourlyCost, *pool.HourlyCost})
		}
	}
	assert.Equal(t, []string{"system", "loaders", "ps", "training,spot,other"}, names)
	classes := map[string]string{}
	for _, pool := range s.Pools() {
		_, classes[pool.Name] = pool.ListLabel()
	}
	maps.DeleteFunc(classes, func(_, class string) bool { return class == "" })
	assert.Equal(t, map[string]string{"training": "persia-training", "spot": "persia-training", "other": "persia-training"}, classes)
	testkit.Warned(t, []testkit.Refusal{
		{"several zones", listed, "persia:jobs[0].nnWorker.nodePool", []string{"may be in several zones", "0.01 USD", "NCCL"}},
		{"one zone", listed.And(edits{"persia:nodePools[4].zones": nil}), "persia:jobs[0].nnWorker.nodePool", nil},
	})
}
