package jobspec_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/capacity"
	"persia/internal/stacktest"
)

const operatorImage = "registry.example.com/persia@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"

// leftToOperator returns edits for a base stack that PERSIA's operator can run, and more edits.
func leftToOperator(more edits) edits {
	changes := edits{
		"persia:jobs[0].engine":          "operator",
		"persia:operator.image":          operatorImage,
		"persia:nodePools[1].taints":     nil,
		"persia:storage[0].gcsFuse":      nil,
		"persia:storage[0].nfs":          edits{"server": "10.0.0.2", "path": "/"},
		"persia:jobs[0].nnWorker.mounts": []any{edits{"volume": "checkpoints", "mountPath": "/more"}},
	}
	maps.Copy(changes, more)
	return changes
}

func TestLoadRefusesForEngine(t *testing.T) {
	refusals := []stacktest.Refusal{
		{"engine unknown", edits{"persia:jobs[0].engine": "Operator"},
			"persia:jobs[0].engine", []string{`"Operator"`, "statefulset, jobset or operator"}},
	}
	for _, r := range []stacktest.Refusal{
		{"script", edits{"persia:jobs[0].script": edits{"runtime": "/opt/persia-runtime"}},
			"persia:jobs[0].script", []string{"/opt/persia-runtime", "persia-launcher", "remove it"}},
		{"another run", edits{"persia:jobs[0].runId": "second"},
			"persia:jobs[0].runId", []string{`"second"`, "rename the job"}},
		{"token", edits{"persia:jobs[0].automountServiceAccountToken": true},
			"persia:jobs[0].automountServiceAccountToken", []string{"true", "service account default", "remove it"}},
		{"secret of a registry", edits{"persia:jobs[0].imagePullSecrets": []any{edits{"name": "registry"}}},
			"persia:jobs[0].imagePullSecrets[0]", []string{`"registry"`, "add the Secret to the service account default"}},
		{"time to end", edits{"persia:jobs[0].dataloader.terminationGracePeriodSeconds": 90},
			"persia:jobs[0].dataloader.terminationGracePeriodSeconds", []string{"90", "remove it"}},
		{"bucket mounted by all", edits{"persia:storage[0].nfs": nil, "persia:storage[0].gcsFuse": edits{"bucket": "persia-checkpoints"}, "persia:jobs[0].nnWorker.mounts": nil},
			"persia:jobs[0].mounts[0].volume", []string{`"checkpoints"`, "gcsFuse", "filestore"}},
		{"bucket mounted by a role", edits{"persia:storage[1]": edits{"name": "data", "size": "1Gi", "gcsFuse": edits{"bucket": "data-bucket"}},
			"persia:jobs[0].nnWorker.mounts": []any{edits{"volume": "data", "mountPath": "/data"}}},
			"persia:jobs[0].nnWorker.mounts[0].volume", []string{`"data"`, "gcsFuse"}},
		{"disk", edits{"persia:storage[1]": edits{"name": "disk", "size": "100Gi", "persistentDisk": edits{"disk": "disk", "zones": []any{"us-central1-a"}}},
			"persia:jobs[0].embeddingParameterServer.mounts": []any{edits{"volume": "disk", "mountPath": "/disk"}}},
			"persia:jobs[0].embeddingParameterServer.mounts[0].volume", []string{`"disk"`, "single node", "filestore"}},
		{"directory of a node", edits{"persia:storage[1]": edits{"name": "local", "size": "1Gi", "hostPath": edits{"path": "/var/lib/persia"}, "accessModes": []any{"ReadWriteMany"}},
			"persia:jobs[0].embeddingParameterServer.mounts": []any{edits{"volume": "local", "mountPath": "/data"}}},
			"persia:jobs[0].embeddingParameterServer.mounts[0].volume", []string{`"local"`, "single node"}},
		{"taint", edits{"persia:nodePools[2].taints": []any{edits{"key": "dedicated", "value": "ps", "effect": "NoSchedule"}}},
			"persia:jobs[0].embeddingParameterServer.nodePool", []string{`"ps"`, "taint dedicated", "pool without"}},
		{"spot", edits{"persia:nodePools[2].spot": true},
			"persia:jobs[0].embeddingParameterServer.nodePool", []string{`"ps"`, "cloud.google.com/gke-spot"}},
		{"GPU pool for a role without GPUs", edits{"persia:jobs[0].nnWorker.resources.limits": edits{"cpu": 8, "memory": "60Gi"}},
			"persia:jobs[0].nnWorker.nodePool", []string{`"training"`, "has GPUs", "without GPUs"}},
		{"volume of a younger kind", edits{"persia:jobs[0].volumes": []any{edits{"name": "scratch", "ephemeral": edits{"volumeClaimTemplate": edits{"spec": edits{"accessModes": []any{"ReadWriteOnce"}, "resources": edits{"requests": edits{"storage": "1Gi"}}}}}}}},
			"persia:jobs[0].volumes[0].ephemeral", []string{`"scratch"`, "does not know", "persistentVolumeClaim"}},
		{"image as a volume", edits{"persia:jobs[0].volumes": []any{edits{"name": "model", "image": edits{"reference": "registry.example.com/model:1"}}}},
			"persia:jobs[0].volumes[0].image", []string{`"model"`, "does not know"}},
		{"bucket without a volume", edits{"persia:jobs[0].volumes": []any{edits{"name": "bucket", "csi": edits{"driver": "gcsfuse.csi.storage.gke.io"}}}},
			"persia:jobs[0].volumes[0].csi.driver", []string{"gcsfuse.csi.storage.gke.io", "annotation"}},
	} {
		r.Edits, r.Says = leftToOperator(r.Edits), append(r.Says, "engine: statefulset")
		refusals = append(refusals, r)
	}
	stacktest.Refused(t, refusals)
}

func TestLoadAcceptsForEngine(t *testing.T) {
	for name, changes := range map[string]edits{
		"written out":         {"persia:jobs[0].engine": "statefulset"},
		"operator":            leftToOperator(nil),
		"suspended":           leftToOperator(edits{"persia:jobs[0].suspend": true}),
		"restarted":           leftToOperator(edits{"persia:jobs[0].restartPolicy": "OnFailure"}),
		"a taint that allows": leftToOperator(edits{"persia:nodePools[2].taints": []any{edits{"key": "slow", "effect": "PreferNoSchedule"}}}),
		"a disk that is only read": leftToOperator(edits{
			"persia:storage[1]": edits{"name": "data", "size": "100Gi", "accessModes": []any{"ReadOnlyMany"},
				"persistentDisk": edits{"disk": "data", "zones": []any{"us-central1-a"}}},
			"persia:jobs[0].dataloader.mounts": []any{edits{"volume": "data", "mountPath": "/data", "readOnly": true}},
		}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := stacktest.Load(t, changes)
			assert.NoError(t, err)
		})
	}
}

// TestVolumesOfTheOnlyNode checks that one node is enough for pods that nothing pins.
func TestVolumesOfTheOnlyNode(t *testing.T) {
	role := func(cpu string) edits {
		return edits{"nodePool": "system", "resources": edits{"limits": edits{"cpu": cpu, "memory": "512Mi"}}}
	}
	for nodes, accepts := range map[int]bool{1: true, 2: false} {
		_, err := stacktest.Load(t, edits{
			"persia:jobs[0].engine":             "operator",
			"persia:operator.image":             operatorImage,
			"persia:cluster.deletionProtection": false,
			"persia:cluster.systemPool":         edits{"machineType": "e2-standard-8", "nodes": nodes},
			"persia:nvidiaDriver":               edits{"installer": "managed"},
			"persia:nodePools":                  []any{},
			"persia:nats":                       edits{"size": 1, "resources": edits{"limits": edits{"cpu": "100m", "memory": "512Mi"}}},
			"persia:storage":                    []any{edits{"name": "checkpoints", "size": "1Gi", "hostPath": edits{"path": "/mnt/disks/checkpoints"}}},
			"persia:jobs[0].nnWorker":           role("100m"), "persia:jobs[0].dataloader": role("100m"),
			"persia:jobs[0].embeddingWorker": role("100m"), "persia:jobs[0].embeddingParameterServer": role("100m"),
		})
		if accepts {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, "is on a single node")
		}
	}
}

// TestEngineWarns checks the warnings about pods that may run on other pools than planned, the
// fixed image of the metrics gateway, and pods that never end.
func TestEngineWarns(t *testing.T) {
	const (
		warning = "persia:jobs[0].engine: the operator does not pin pods to their node pools"
		gateway = "persia:jobs[0].enableMetrics: PERSIA's operator runs the metrics gateway by the image prom/pushgateway:latest"
		endless = "persia:jobs[0].restartPolicy: pods that have finished start again"
	)
	warnings := func(changes edits) string {
		stack, err := stacktest.Load(t, changes)
		require.NoError(t, err)
		return strings.Join(stack.Warnings(), "\n")
	}
	assert.NotContains(t, warnings(nil), warning)
	assert.Contains(t, warnings(leftToOperator(nil)), warning)
	assert.Contains(t, warnings(leftToOperator(nil)), gateway)
	assert.NotContains(t, warnings(leftToOperator(edits{"persia:jobs[0].enableMetrics": false})), gateway)
	assert.NotContains(t, warnings(leftToOperator(nil)), endless)
	assert.Contains(t, warnings(leftToOperator(edits{"persia:jobs[0].restartPolicy": "Always"})), endless)
}

// TestPlanCountsTheOperator checks that the plan counts the operator only if a job uses it.
func TestPlanCountsTheOperator(t *testing.T) {
	operators := func(changes edits) int {
		stack, err := stacktest.Load(t, changes)
		require.NoError(t, err)
		for _, pods := range stack.Plan().Pools[0].Pods {
			if pods.Name == "PERSIA operator" {
				assert.Equal(t, capacity.PERSIAOperator, pods.Requests)
				return pods.Count
			}
		}
		return 0
	}
	assert.Equal(t, 0, operators(nil))
	assert.Equal(t, 1, operators(leftToOperator(nil)))
}
