package jobspec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"persia/internal/stacktest"
)

type edits = stacktest.Edits

// TestRefused checks the message for each mistake.
func TestRefused(t *testing.T) {
	stacktest.Refused(t, []stacktest.Refusal{
		// Jobs.
		{"job without a name", edits{"persia:jobs[0].name": nil},
			"persia:jobs[0].name", []string{"Required"}},
		{"job name invalid", edits{"persia:jobs[0].name": "train_1"},
			"persia:jobs[0].name", []string{"train_1", "DNS-1035"}},
		{"job name too long", edits{"persia:jobs[0].name": strings.Repeat("j", 36)},
			"persia:jobs[0].name", []string{"36 characters", "at most 35", "NAME-embedding-worker", "at most 63", "shorter"}},
		{"service of a job and of NATS", edits{"persia:nats.name": "train-nn-worker"},
			"persia:jobs[0].name", []string{"train-nn-worker", "persia:nats.name", "rename"}},
		{"path of PERSIA missing", edits{"persia:jobs[0].persiaEnv.PERSIA_NN_WORKER_ENTRY": nil},
			"persia:jobs[0].persiaEnv.PERSIA_NN_WORKER_ENTRY", []string{"Required", "absolute path"}},
		{"path of PERSIA relative", edits{"persia:jobs[0].persiaEnv.PERSIA_GLOBAL_CONFIG": "config.yml"},
			"persia:jobs[0].persiaEnv.PERSIA_GLOBAL_CONFIG", []string{`"config.yml"`, "like /workspace/config.yml"}},
		{"log level unknown", edits{"persia:jobs[0].logLevel": "verbose"},
			"persia:jobs[0].logLevel", []string{"verbose", "trace, debug, info, warn or error"}},
		{"pull policy unknown", edits{"persia:jobs[0].imagePullPolicy": "always"},
			"persia:jobs[0].imagePullPolicy", []string{"always", "Always, IfNotPresent or Never"}},
		{"variable name invalid", edits{"persia:jobs[0].env[0].name": "A B"},
			"persia:jobs[0].env[0].name", []string{"A B", "environment variable"}},
		{"variable twice", edits{"persia:jobs[0].env[1]": edits{"name": "NCCL_DEBUG", "value": "WARN"}},
			"persia:jobs[0].env[1].name", []string{"NCCL_DEBUG", "env[0]"}},
		{"variable that is computed", edits{"persia:jobs[0].nnWorker.env": []any{edits{"name": "WORLD_SIZE", "value": "2"}}},
			"persia:jobs[0].nnWorker.env[0].name", []string{"WORLD_SIZE", "replicas and nprocPerNode", "remove it"}},
		{"time with a unit", edits{"persia:jobs[0].nnWorker.env": []any{edits{"name": "PERSIA_STUCK_SECONDS", "value": "1h"}}},
			"persia:jobs[0].nnWorker.env[0].value", []string{`"1h"`, "a number of seconds", "like 7200"}},
		{"time below 0", edits{"persia:jobs[0].env[0]": edits{"name": "PERSIA_STUCK_SECONDS", "value": "-1"}},
			"persia:jobs[0].env[0].value", []string{`"-1"`, "0 for no limit"}},
		{"time without a value", edits{"persia:jobs[0].env[0]": edits{"name": "PERSIA_STUCK_SECONDS"}},
			"persia:jobs[0].env[0].value", []string{`""`, "a number of seconds"}},
		{"checkpoints in words", edits{"persia:jobs[0].env[0]": edits{"name": "PERSIA_CKPT_KEEP", "value": "all"}},
			"persia:jobs[0].env[0].value", []string{`"all"`, "at least 1", "remove it for 2"}},
		{"no checkpoint", edits{"persia:jobs[0].env[0]": edits{"name": "PERSIA_CKPT_KEEP", "value": "0"}},
			"persia:jobs[0].env[0].value", []string{`"0"`, "at least 1"}},
		{"variable with two values", edits{"persia:jobs[0].env[0].valueFrom": edits{"secretKeyRef": edits{"name": "a", "key": "b"}}},
			"persia:jobs[0].env[0].valueFrom", []string{"either value or valueFrom"}},
		{"variable from nowhere", edits{"persia:jobs[0].env[0]": edits{"name": "A", "valueFrom": edits{}}},
			"persia:jobs[0].env[0].valueFrom", []string{"0 sources", "exactly one"}},
		{"variable from a secret without key", edits{"persia:jobs[0].env[0]": edits{"name": "A", "valueFrom": edits{"secretKeyRef": edits{"name": "a"}}}},
			"persia:jobs[0].env[0].valueFrom.secretKeyRef.key", []string{"Required"}},
		{"volume that is not there", edits{"persia:jobs[0].mounts[0].volume": "checkpoint"},
			"persia:jobs[0].mounts[0].volume", []string{`"checkpoint"`, "volumes: checkpoints"}},
		{"mount in a stack without volumes", edits{"persia:storage": []any{}},
			"persia:jobs[0].mounts[0].volume", []string{"the stack has none", "persia:storage"}},
		{"mount path relative", edits{"persia:jobs[0].mounts[0].mountPath": "checkpoints"},
			"persia:jobs[0].mounts[0].mountPath", []string{`"checkpoints"`, "write /checkpoints"}},
		{"mount path twice", edits{"persia:jobs[0].mounts[1]": edits{"volume": "checkpoints", "mountPath": "/checkpoints"}},
			"persia:jobs[0].mounts[1].mountPath", []string{"/checkpoints", "mounts[0]"}},
		{"mount over shared memory", edits{"persia:jobs[0].mounts[0].mountPath": "/dev/shm"},
			"persia:jobs[0].mounts[0].mountPath", []string{"/dev/shm", "another path"}},
		{"mount over the launch script", edits{"persia:jobs[0].mounts[0].mountPath": "/opt/persia"},
			"persia:jobs[0].mounts[0].mountPath", []string{"/opt/persia", "script", "another path"}},
		{"name of a run that is no name", edits{"persia:jobs[0].runId": "second run"},
			"persia:jobs[0].runId", []string{"second run", "lower case"}},

		// Roles.
		{"role missing", edits{"persia:jobs[0].embeddingWorker": nil},
			"persia:jobs[0].embeddingWorker.resources.limits[memory]", []string{"write how much embeddingWorker needs"}},
		{"role without a pool", edits{"persia:jobs[0].dataloader.nodePool": nil},
			"persia:jobs[0].dataloader.nodePool", []string{"Required", "training, loaders or ps"}},
		{"role on a pool that is not there", edits{"persia:jobs[0].dataloader.nodePool": "loader"},
			"persia:jobs[0].dataloader.nodePool", []string{`"loader"`, "training, loaders or ps"}},
		{"role on the system pool", edits{"persia:jobs[0].dataloader.nodePool": "system"},
			"persia:jobs[0].dataloader.nodePool", []string{`"system"`, "training, loaders or ps"}},
		{"role in a stack without pools", edits{"persia:nodePools": []any{}},
			"persia:jobs[0].dataloader.nodePool", []string{"one of the stack's node pools", "system"}},
		{"image with a space", edits{"persia:jobs[0].dataloader.image": "persia :latest"},
			"persia:jobs[0].dataloader.image", []string{"persia :latest", "must be an image reference"}},
		{"role without CPU", edits{"persia:jobs[0].dataloader.resources.limits.cpu": nil},
			"persia:jobs[0].dataloader.resources.limits[cpu]", []string{"Required", "dataloader"}},
		{"quantity negative", edits{"persia:jobs[0].dataloader.resources.limits.cpu": -1},
			"persia:jobs[0].dataloader.resources.limits[cpu]", []string{`"-1"`, "more than 0"}},
		{"memory without a unit", edits{"persia:jobs[0].dataloader.resources.limits.memory": 12},
			"persia:jobs[0].dataloader.resources.limits[memory]", []string{`"12"`, "without a unit is in bytes"}},
		{"resource unknown", edits{"persia:jobs[0].dataloader.resources.limits.gpu": 1},
			"persia:jobs[0].dataloader.resources.limits[gpu]", []string{`"gpu"`, "nvidia.com/gpu"}},
		{"GPU resource misspelt", edits{"persia:jobs[0].nnWorker.resources.limits": edits{"cpu": 1, "memory": "1Gi", "nvidia.com/gpus": 1}},
			"persia:jobs[0].nnWorker.resources.limits[nvidia.com/gpus]", []string{"did you mean nvidia.com/gpu?"}},
		{"request above the limit", edits{"persia:jobs[0].dataloader.resources.requests": edits{"cpu": 2}},
			"persia:jobs[0].dataloader.resources.requests[cpu]", []string{`"2"`, "at most the limit, 1"}},
		{"GPUs requested without limit", edits{"persia:jobs[0].nnWorker.resources": edits{"limits": edits{"cpu": 1, "memory": "1Gi"}, "requests": edits{"nvidia.com/gpu": 8}}},
			"persia:jobs[0].nnWorker.resources.requests[nvidia.com/gpu]", []string{`"8"`, "equal the limit", "only in limits"}},
		{"resource claims", edits{"persia:jobs[0].nnWorker.resources.claims": []any{edits{"name": "gpu"}}},
			"persia:jobs[0].nnWorker.resources.claims", []string{"write limits and requests"}},
		{"half a GPU", edits{"persia:jobs[0].nnWorker.resources.limits": edits{"cpu": 80, "memory": "600Gi", "nvidia.com/gpu": "500m"}},
			"persia:jobs[0].nnWorker.resources.limits[nvidia.com/gpu]", []string{"500m", "whole number"}},
		{"GPUs on a pool without", edits{"persia:jobs[0].embeddingParameterServer.resources.limits": edits{"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 1}},
			"persia:jobs[0].embeddingParameterServer.resources.limits[nvidia.com/gpu]", []string{`embeddingParameterServer requests 1 nvidia.com/gpu, but pool "ps" has none`, "GPU pool"}},
		{"more GPUs than a node has", edits{"persia:jobs[0].nnWorker.resources.limits": edits{"cpu": 80, "memory": "600Gi", "nvidia.com/gpu": 16}},
			"persia:jobs[0].nnWorker.resources.limits[nvidia.com/gpu]", []string{"16", `pool "training" has 8`, "at most that"}},
		{"more CPU than a node leaves", edits{"persia:jobs[0].nnWorker.resources.limits": edits{"cpu": 96, "memory": "600Gi"}},
			"persia:jobs[0].nnWorker.resources.limits[cpu]", []string{`"96"`, `pool "training"`, "of a2-highgpu-8g", "leave 95.04 vCPU", "choose a machine type that holds it"}},
		{"more memory than a node leaves", edits{"persia:nodePools[0]": edits{"name": "training", "machineType": "n1-highmem-96", "nodes": 2, "gpu": edits{"type": "nvidia-tesla-v100", "count": 8}}},
			"persia:jobs[0].nnWorker.resources.limits[memory]", []string{"600Gi", `pool "training"`, "of n1-highmem-96", "leave 593.7Gi", "a2-highgpu-8g"}},
		{"requests count before limits", edits{"persia:jobs[0].dataloader.resources": edits{"limits": edits{"cpu": 64, "memory": "12Gi"}, "requests": edits{"cpu": 40}}},
			"persia:jobs[0].dataloader.resources.requests[cpu]", []string{`"40"`, "31.35 vCPU"}},
		{"more processes than GPUs", edits{"persia:jobs[0].nnWorker.nprocPerNode": 9},
			"persia:jobs[0].nnWorker.nprocPerNode", []string{"9", "at most 8, the number of GPUs"}},
		{"processes negative", edits{"persia:jobs[0].nnWorker.nprocPerNode": -1},
			"persia:jobs[0].nnWorker.nprocPerNode", []string{"-1", "at least 1"}},
	}, "role missing", "role in a stack without pools")
}

// TestNumbersAccepted checks that variables for numbers accept numbers and references.
func TestNumbersAccepted(t *testing.T) {
	for _, env := range []edits{
		{"name": "PERSIA_STUCK_SECONDS", "value": "0"}, {"name": "PERSIA_STUCK_SECONDS", "value": "7200.5"}, {"name": "PERSIA_STUCK_SECONDS", "value": "$(PATIENCE)"},
		{"name": "PERSIA_CKPT_KEEP", "value": "10"}, {"name": "PERSIA_CKPT_KEEP", "valueFrom": edits{"configMapKeyRef": edits{"name": "a", "key": "b"}}},
	} {
		_, err := stacktest.Load(t, edits{"persia:jobs[0].env[0]": env})
		assert.NoError(t, err, "%v", env)
	}
}
