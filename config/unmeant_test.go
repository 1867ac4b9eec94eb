package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/testkit"
)

// TestStackWarned checks the warnings that span topics.
func TestStackWarned(t *testing.T) {
	const nodePool = "persia:nodePools[3]"
	pool := func(machineType string) edits {
		return edits{nodePool: edits{"name": "spare", "machineType": machineType, "nodes": 1}}
	}
	described := func(name string) edits {
		return edits{"persia:machineTypes": edits{name: edits{"cpus": 32, "memory": "128Gi"}}}
	}
	testkit.Warned(t, []testkit.Refusal{
		{"pool that nothing uses", pool("n2-standard-8"), nodePool, []string{"nothing of the stack runs on the pool spare", "remove it"}},
		{"GPU pool that no role uses", pool("a2-highgpu-1g"), nodePool, []string{"nothing of the stack runs on the pool spare", "billed"}},
		{"pools that roles use", edits{}, "persia:nodePools[0]", nil},
		{"NATS with known vulnerabilities", edits{"persia:nats.version": "2.10.22"}, "persia:nats.version", []string{"2.10.22", "2.11.15", "2.12.6", "advisories.nats.io"}},
		{"NATS 2.12 with known vulnerabilities", edits{"persia:nats.version": "2.12.5"}, "persia:nats.version", []string{"known vulnerabilities"}},
		{"NATS 2.11 with the fixes", edits{"persia:nats.version": "2.11.15"}, "persia:nats.version", nil},
		{"GPUs that no role requests", edits{"persia:jobs[0].nnWorker.resources": edits{"limits": edits{"cpu": 80, "memory": "600Gi"}}}, "persia:nodePools[0]", []string{"no role on the pool training requests its GPUs", "nvidia.com/gpu"}},
	})
	testkit.Refused(t, []testkit.Refusal{
		{"Arm machines", described("t2a-standard-32").And(edits{nodePool: edits{"name": "spare", "machineType": "t2a-standard-32", "nodes": 1, "zones": []any{"us-central1-a"}, "disk": edits{"type": "pd-balanced"}},
			"persia:jobs[0].dataloader.nodePool": "spare"}), "persia:jobs[0].dataloader.nodePool", []string{`"spare"`, "Arm machines, t2a-standard-32", "another machine type"}},
		{"Arm machines of the system pool", described("t2a-standard-32").And(edits{"persia:cluster.systemPool": edits{"machineType": "t2a-standard-32"}}), "persia:cluster.systemPool.machineType", []string{"Arm processors"}},
		{"Arm machines for PEDL's agents", described("t2a-standard-32").And(edits{nodePool: edits{"name": "spare", "machineType": "t2a-standard-32", "nodes": 1, "zones": []any{"us-central1-a"}, "disk": edits{"type": "pd-balanced"}},
			"persia:pedl": pedlOn("ps", edits{}).And(edits{"agent": edits{"nodePools": []any{"spare"}}})}), "persia:pedl.agent.nodePools[0]", []string{`"spare"`, "Arm machines"}},
	}, "Arm machines of the system pool") // NATS runs there too
}

// pedlOn returns a PEDL on a node pool, whose service has some settings.
func pedlOn(pool string, service edits) edits {
	small := edits{"limits": edits{"cpu": 1, "memory": "1Gi"}}
	return edits{"registry": edits{"password": "word"}, "nodePool": pool, "resources": small, "service": service,
		"postgresql": edits{"postgresqlPassword": "word", "resources": small}}
}

// TestStackFilesWarnings checks that the repository's stack files lead to no warnings but these.
func TestStackFilesWarnings(t *testing.T) {
	paths := testkit.Must(filepath.Glob("../Pulumi.*.yaml"))(t)
	examples := testkit.Must(filepath.Glob("../examples/Pulumi.*.yaml"))(t)
	require.NotEmpty(t, paths)
	require.NotEmpty(t, examples)
	for _, path := range append(paths, examples...) {
		s, err := config.Load(testkit.Parse(t, testkit.Read(t, path)).Decrypted().Get, os.DirFS("../examples"))
		require.NoError(t, err, path)
		for _, warning := range s.Warnings() {
			known := strings.Contains(path, "Pulumi.manifest") && strings.Contains(warning, "there is no volume that nnWorker and embeddingParameterServer can write")
			assert.True(t, known, "%s: %s", path, warning)
		}
	}
}
