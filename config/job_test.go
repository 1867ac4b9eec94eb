package config_test

import (
	"cmp"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/capacity"
	"persia/internal/testkit"
)

// TestJobRefused checks the message for each mistake.
func TestJobRefused(t *testing.T) {
	testkit.Refused(t, []testkit.Refusal{
		// Jobs.
		{"job without a name", edits{"persia:jobs[0].name": nil}, "persia:jobs[0].name", []string{"Required"}},
		{"job name too long", edits{"persia:jobs[0].name": strings.Repeat("j", 36)},
			"persia:jobs[0].name", []string{"36 characters", "at most 35", "NAME-embedding-worker", "at most 63", "shorter"}},
		{"path of PERSIA relative", edits{"persia:jobs[0].persiaEnv.PERSIA_GLOBAL_CONFIG": "config.yml"},
			"persia:jobs[0].persiaEnv.PERSIA_GLOBAL_CONFIG", []string{`"config.yml"`, "like /workspace/config.yml"}},
		{"variable name invalid", edits{"persia:jobs[0].env[0].name": "A B"}, "persia:jobs[0].env[0].name", []string{"A B", "environment variable"}},
		{"variable twice", edits{"persia:jobs[0].env[1]": edits{"name": "NCCL_DEBUG", "value": "WARN"}}, "persia:jobs[0].env[1].name", []string{"NCCL_DEBUG", "env[0]"}},
		{"variable that is computed", edits{"persia:jobs[0].nnWorker.env": []any{edits{"name": "WORLD_SIZE", "value": "2"}}},
			"persia:jobs[0].nnWorker.env[0].name", []string{"WORLD_SIZE", "replicas and nprocPerNode", "remove the variable"}},
		{"volume that is not there", edits{"persia:jobs[0].mounts[0].volume": "checkpoint"}, "persia:jobs[0].mounts[0].volume", []string{`"checkpoint"`, `persia:storage; write "checkpoints"`}},
		{"mount in a stack without volumes", edits{"persia:storage": []any{}}, "persia:jobs[0].mounts[0].volume", []string{"persia:storage, which has none"}},
		{"mount path relative", edits{"persia:jobs[0].mounts[0].mountPath": "checkpoints"}, "persia:jobs[0].mounts[0].mountPath", []string{`"checkpoints"`, "write /checkpoints"}},
		{"mount path twice", edits{"persia:jobs[0].mounts[1]": edits{"volume": "checkpoints", "mountPath": "/checkpoints"}},
			"persia:jobs[0].mounts[1].mountPath", []string{"/checkpoints", "already used by the mount of checkpoints"}},
		{"mount above the driver", edits{"persia:jobs[0].mounts[0].mountPath": "/usr/local"}, "persia:jobs[0].mounts[0].mountPath", []string{"overlaps with /usr/local/nvidia"}},
		{"mount below the start script", edits{"persia:jobs[0].mounts[0].mountPath": "/opt/persia/a"}, "persia:jobs[0].mounts[0].mountPath", []string{"overlaps with /opt/persia"}},
		{"mount over programs", edits{"persia:jobs[0].mounts[0].mountPath": "/usr/bin"}, "persia:jobs[0].mounts[0].mountPath", []string{"overlaps with the programs of the image"}},
		{"mount of a role where the job has one", edits{"persia:jobs[0].nnWorker.mounts": []any{edits{"volume": "checkpoints", "mountPath": "/checkpoints"}}},
			"persia:jobs[0].nnWorker.mounts[0].mountPath", []string{"already used by the job's mount of checkpoints"}},
		{"partial recovery of pods that nothing starts again", leftToOperator(edits{"persia:jobs[0].recovery": "partial"}),
			"persia:jobs[0].recovery", []string{"must be full with engine: operator", "another engine"}},
		{"partial recovery with checkpoints elsewhere", edits{"persia:jobs[0].recovery": "partial", "persia:jobs[0].env[1]": edits{"name": "PERSIA_CKPT_DIR", "value": "/checkpoints/a"}},
			"persia:jobs[0].recovery", []string{"PERSIA_CKPT_DIR in persia:jobs[0].env[1]", "remove the variable"}},
		{"partial recovery without checkpoints", edits{"persia:jobs[0].recovery": "partial", "persia:jobs[0].mounts[0].readOnly": true},
			"persia:jobs[0].recovery", []string{"must be full without checkpoints", "add a mount without readOnly"}},
		{"name of a run that is no name", edits{"persia:jobs[0].runId": "second run"}, "persia:jobs[0].runId", []string{"second run", "lower case"}},

		// Volumes.
		{"bucket of the job", withVolume(edits{"csi": edits{"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": edits{"bucketName": "a"}}}, "/data"), "persia:jobs[0].volumes[0].csi.driver", []string{"annotation", "gcsFuse of persia:storage"}},
		{"NFS without a server", withVolume(edits{"nfs": edits{"path": "/a"}}, "/data"), "persia:jobs[0].volumes[0].nfs.server", []string{"Required"}},

		// Roles.
		{"role missing", edits{"persia:jobs[0].embeddingWorker": nil}, "persia:jobs[0].embeddingWorker.resources.limits[memory]", []string{"write how much embeddingWorker needs"}},
		{"role without a pool", edits{"persia:jobs[0].dataloader.nodePool": nil}, "persia:jobs[0].dataloader.nodePool", []string{"Required", `pools; write "loaders"`}},
		{"role on the job's pool that is not there", edits{"persia:jobs[0].dataloader.nodePool": nil, "persia:jobs[0].nodePool": "loader"},
			"persia:jobs[0].nodePool", []string{`"loader"`, `pools; write "loaders"`}},
		{"role on a pool that is not there", edits{"persia:jobs[0].dataloader.nodePool": "loader"}, "persia:jobs[0].dataloader.nodePool", []string{`"loader"`, `pools; write "loaders"`}},
		{"role in a stack without pools", edits{"persia:nodePools": []any{}}, "persia:jobs[0].dataloader.nodePool", []string{"one of the stack's node pools", "system"}},
		{"more CPU than a node leaves", edits{"persia:jobs[0].nnWorker.resources.limits": edits{"cpu": 96, "memory": "600Gi"}},
			"persia:nodePools[0].machineType", []string{`"a2-highgpu-8g"`, "too little CPU for a pod of nnWorker of train", "leave 95.04 vCPU, 647.7Gi of memory, 43Gi of ephemeral storage, and 8 GPUs", "assign it to another pool"}},
		{"requests count before limits", edits{"persia:jobs[0].dataloader.resources": edits{"limits": edits{"cpu": 64, "memory": "12Gi"}, "requests": edits{"cpu": 40}}},
			"persia:nodePools[1].machineType", []string{"dataloader of train", "31.35 vCPU", "write machineType: n2-standard-128"}},
		{"more processes than GPUs", edits{"persia:jobs[0].nnWorker.nprocPerNode": 9}, "persia:jobs[0].nnWorker.nprocPerNode", []string{"9", "at most 8, the number of GPUs"}},
	}, "role missing", "role in a stack without pools")
}

// TestNumbers checks that a stack file has the bounds of the start script for each number, and takes references.
func TestNumbers(t *testing.T) {
	type number struct {
		name, value string
		accepted    bool
	}
	numbers := []number{
		{"PERSIA_STUCK_SECONDS", "7200.5", true}, {"PERSIA_STUCK_SECONDS", "$(PATIENCE)", true}, {"PERSIA_STUCK_SECONDS", "0.5", false},
		{"PERSIA_CKPT_KEEP", "1.5", false}, {"PERSIA_GPU_SECONDS", "0", false}, {"PERSIA_REPORT_SECONDS", "0", false},
	}
	variables := regexp.MustCompile(`"(PERSIA_\w+)", "(\d+)"(?:, (\d+))?(?:, kind=int)?\)`).
		FindAllStringSubmatch(testkit.Read(t, "../workload/persia/settings.py"), -1)
	for _, variable := range variables {
		name, least := variable[1], cmp.Or(variable[3], "1")
		numbers = append(numbers, number{name, variable[2], true}, number{name, least, true}, number{name, "0", least == "0"},
			number{name, "29", least != "30"}, number{name, "1000000000", true}, number{name, "1000000001", false}, number{name, "inf", false})
	}
	assert.Len(t, variables, 12, "%v", variables)
	for _, n := range numbers {
		_, err := testkit.Load(t, edits{"persia:jobs[0].env[0]": edits{"name": n.name, "value": n.value}})
		assert.Equal(t, n.accepted, err == nil, "%s: %s: %v", n.name, n.value, err)
	}
	_, err := testkit.Load(t, edits{"persia:jobs[0].env[0]": edits{"name": "PERSIA_CKPT_KEEP", "valueFrom": edits{"configMapKeyRef": edits{"name": "a", "key": "b"}}}})
	assert.NoError(t, err)
}

const operatorImage = "registry.example.com/persia@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"

// leftToOperator returns edits for a base stack that PERSIA's operator can run, and more edits.
func leftToOperator(more edits) edits {
	return edits{
		"persia:jobs[0].engine":          "operator",
		"persia:operator.image":          operatorImage,
		"persia:nodePools[1].taints":     nil,
		"persia:storage[0].gcsFuse":      nil,
		"persia:storage[0].nfs":          edits{"server": "10.0.0.2", "path": "/"},
		"persia:jobs[0].nnWorker.mounts": []any{edits{"volume": "checkpoints", "mountPath": "/more"}},
	}.And(more)
}

func TestLoadRefusesForEngine(t *testing.T) {
	var refusals []testkit.Refusal
	for _, r := range []testkit.Refusal{
		{"script", edits{"persia:jobs[0].script": edits{"runtime": "/opt/persia-runtime"}}, "persia:jobs[0].script", []string{"/opt/persia-runtime", "persia-launcher", "remove it"}},
		{"another run", edits{"persia:jobs[0].runId": "second"}, "persia:jobs[0].runId", []string{`"second"`, "rename the job"}},
		{"secret of a registry", edits{"persia:jobs[0].imagePullSecrets": []any{edits{"name": "registry"}}},
			"persia:jobs[0].imagePullSecrets[0]", []string{`"registry"`, "add the Secret to the service account default"}},
		{"time to end", edits{"persia:jobs[0].dataloader.terminationGracePeriodSeconds": 90}, "persia:jobs[0].dataloader.terminationGracePeriodSeconds", []string{"90", "remove it"}},
		{"bucket mounted by all", edits{"persia:storage[0].nfs": nil, "persia:storage[0].gcsFuse": edits{"bucket": "persia-checkpoints"}, "persia:jobs[0].nnWorker.mounts": nil},
			"persia:jobs[0].mounts[0].volume", []string{`"checkpoints"`, "gcsFuse", "filestore"}},
		{"disk", edits{"persia:storage[1]": edits{"name": "disk", "size": "100Gi", "persistentDisk": edits{"disk": "disk", "zones": []any{"us-central1-a"}}},
			"persia:jobs[0].embeddingParameterServer.mounts": []any{edits{"volume": "disk", "mountPath": "/disk"}}},
			"persia:jobs[0].embeddingParameterServer.mounts[0].volume", []string{`"disk"`, "single node", "filestore"}},
		{"directory of a node", edits{"persia:storage[1]": edits{"name": "local", "size": "1Gi", "hostPath": edits{"path": "/var/lib/persia"}, "accessModes": []any{"ReadWriteMany"}},
			"persia:jobs[0].embeddingParameterServer.mounts": []any{edits{"volume": "local", "mountPath": "/data"}}},
			"persia:jobs[0].embeddingParameterServer.mounts[0].volume", []string{`"local"`, "single node"}},
		{"taint", edits{"persia:nodePools[2].taints": []any{edits{"key": "dedicated", "value": "ps", "effect": "NoSchedule"}}},
			"persia:jobs[0].embeddingParameterServer.nodePool", []string{`"ps"`, "taint dedicated", "pool without"}},
		{"spot", edits{"persia:nodePools[2].spot": true}, "persia:jobs[0].embeddingParameterServer.nodePool", []string{`"ps"`, "cloud.google.com/gke-spot"}},
		{"GPU pool for a role without GPUs", edits{"persia:jobs[0].nnWorker.resources.limits": edits{"cpu": 8, "memory": "60Gi"}},
			"persia:jobs[0].nnWorker.nodePool", []string{`"training"`, "has GPUs", "without GPUs"}},
		{"volume of a younger kind", edits{"persia:jobs[0].volumes": []any{edits{"name": "scratch", "ephemeral": edits{"volumeClaimTemplate": edits{"spec": edits{"accessModes": []any{"ReadWriteOnce"}, "resources": edits{"requests": edits{"storage": "1Gi"}}}}}}}},
			"persia:jobs[0].volumes[0].ephemeral", []string{`"scratch"`, "does not know", "persistentVolumeClaim"}},
		{"image as a volume", edits{"persia:jobs[0].volumes": []any{edits{"name": "model", "image": edits{"reference": "registry.example.com/model:1"}}}},
			"persia:jobs[0].volumes[0].image", []string{`"model"`, "does not know"}},
	} {
		r.Edits, r.Says = leftToOperator(r.Edits), append(r.Says, "engine: statefulset")
		refusals = append(refusals, r)
	}
	testkit.Refused(t, refusals)
}

func TestLoadAcceptsForEngine(t *testing.T) {
	testkit.Accepted(t, map[string]edits{
		"operator":            leftToOperator(nil),
		"a taint that allows": leftToOperator(edits{"persia:nodePools[2].taints": []any{edits{"key": "slow", "effect": "PreferNoSchedule"}}}),
		"a disk that is only read": leftToOperator(edits{
			"persia:storage[1]": edits{"name": "data", "size": "100Gi", "accessModes": []any{"ReadOnlyMany"},
				"persistentDisk": edits{"disk": "data", "zones": []any{"us-central1-a"}}},
			"persia:jobs[0].dataloader.mounts": []any{edits{"volume": "data", "mountPath": "/data", "readOnly": true}},
		}),
	})
}

// TestVolumesOfTheOnlyNode checks that one node is enough for pods that nothing pins.
func TestVolumesOfTheOnlyNode(t *testing.T) {
	role := func(cpu string) edits {
		return edits{"nodePool": "system", "resources": edits{"limits": edits{"cpu": cpu, "memory": "512Mi"}}}
	}
	for nodes, says := range map[int]string{1: "", 2: "is on a single node"} {
		_, err := testkit.Load(t, edits{
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
		testkit.Fails(t, err, says)
	}
}

// TestPlanCountsTheOperator checks that the plan counts the operator only if a job uses it.
func TestPlanCountsTheOperator(t *testing.T) {
	operators := func(changes edits) int {
		stack := testkit.Must(testkit.Load(t, changes))(t)
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

// TestJobWarned checks the warnings about jobs that may not do what the user meant.
func TestJobWarned(t *testing.T) {
	const job, variable = "persia:jobs[0]", "persia:jobs[0].env[0]"
	on := func(roles ...string) edits { // the volume on some roles only
		changes := edits{job + ".mounts": nil}
		for _, role := range roles {
			changes[job+"."+role+".mounts"] = []any{edits{"volume": "checkpoints", "mountPath": "/checkpoints"}}
		}
		return changes
	}
	env := func(name, value string) edits { return edits{variable: edits{"name": name, "value": value}} }
	shared := func(source edits) edits { // a volume of the job instead of the stack's
		mounts := []any{edits{"name": "d", "mountPath": "/data"}}
		return edits{"persia:storage": []any{}, job + ".mounts": nil, job + ".volumes": []any{edits{"name": "d"}.And(source)},
			job + ".nnWorker.volumeMounts": mounts, job + ".embeddingParameterServer.volumeMounts": mounts, job + ".embeddingWorker.volumeMounts": mounts}
	}
	scratch := func(directory edits) edits { // of the dataloaders, whose nodes have disks of 100 GB
		return edits{job + ".volumes": []any{edits{"name": "s", "emptyDir": directory}}, job + ".dataloader.volumeMounts": []any{edits{"name": "s", "mountPath": "/s"}}}
	}
	secondJob := func(checkpoints string) edits { // a small job beside the first
		small := func(pool string, limits edits) edits {
			return edits{"nodePool": pool, "resources": edits{"limits": limits}}
		}
		return edits{"persia:nodePools[0].nodes": 3, "persia:nodePools[2].nodes": 2, "persia:nodePools[1].autoscaling.maxNodes": 8, "persia:jobs[1]": edits{
			"name": "second", "env": []any{edits{"name": "PERSIA_CKPT_DIR", "value": checkpoints}},
			"persiaEnv": edits{"PERSIA_GLOBAL_CONFIG": "/checkpoints/g.yml", "PERSIA_EMBEDDING_CONFIG": "/checkpoints/e.yml", "PERSIA_NN_WORKER_ENTRY": "/checkpoints/train.py", "PERSIA_DATALOADER_ENTRY": "/checkpoints/load.py"},
			"mounts":    []any{edits{"volume": "checkpoints", "mountPath": "/checkpoints"}},
			"nnWorker":  small("training", edits{"cpu": 8, "memory": "60Gi", "nvidia.com/gpu": 8}), "dataloader": small("loaders", edits{"cpu": 1, "memory": "12Gi"}),
			"embeddingWorker": small("loaders", edits{"cpu": 1, "memory": "12Gi"}), "embeddingParameterServer": small("ps", edits{"cpu": 1, "memory": "12Gi"}),
		}}
	}
	testkit.Warned(t, []testkit.Refusal{
		{"checkpoints of two jobs in one directory", secondJob("/checkpoints/a").And(env("PERSIA_CKPT_DIR", "/checkpoints/a/")), "persia:jobs[1].env[0].value", []string{"/checkpoints/a is also the directory of persia:jobs[0]", "for each job"}},
		{"checkpoints of two jobs in two directories", secondJob("/checkpoints/b").And(env("PERSIA_CKPT_DIR", "/checkpoints/a")), "persia:jobs[1].env[0].value", nil},
		{"grace that a spot machine cannot give", edits{"persia:nodePools[0].spot": true, job + ".nnWorker.terminationGracePeriodSeconds": 60},
			job + ".nnWorker.terminationGracePeriodSeconds", []string{"60 seconds are more than the 15", "pool training", "write at most 15, or choose another pool"}},
		{"default grace on a spot machine", edits{"persia:nodePools[0].spot": true}, job + ".nnWorker.terminationGracePeriodSeconds", nil},
		{"grace that no upgrade gives", edits{job + ".nnWorker.terminationGracePeriodSeconds": 7200}, job + ".nnWorker.terminationGracePeriodSeconds", []string{"7200 seconds are more than the 3600"}},
		// Checkpoints.
		{"checkpoints on the job's volume", edits{}, job + ".mounts", nil},
		{"servers without the volume", on("nnWorker"), job + ".mounts", []string{"no volume that nnWorker and embeddingParameterServer can write and embeddingWorker can read", "no checkpoint"}},
		{"embedding workers without the volume", on("nnWorker", "embeddingParameterServer"), job + ".mounts", []string{"embeddingWorker can read", "no checkpoint"}},
		{"all but the dataloaders with the volume", on("nnWorker", "embeddingParameterServer", "embeddingWorker"), job + ".mounts", nil},
		{"embedding workers that read", on("nnWorker", "embeddingParameterServer").And(edits{job + ".embeddingWorker.mounts": []any{edits{"volume": "checkpoints", "mountPath": "/checkpoints", "readOnly": true}}}), job + ".mounts", nil},
		{"own checkpoints that embedding workers lack", on("nnWorker", "embeddingParameterServer").And(env("PERSIA_CKPT_DIR", "/checkpoints/a")), variable + ".value", []string{"embeddingWorker can read", "cannot be loaded"}},
		{"servers with the volume elsewhere", on("nnWorker").And(edits{job + ".embeddingParameterServer.mounts": []any{edits{"volume": "checkpoints", "mountPath": "/other"}}}), job + ".mounts", []string{"at one path"}},
		{"checkpoints on the volume of each pod", shared(edits{"ephemeral": edits{"volumeClaimTemplate": edits{"spec": edits{"accessModes": []any{"ReadWriteOnce"}, "resources": edits{"requests": edits{"storage": "1Gi"}}}}}}), job + ".mounts", []string{"keeps no checkpoint"}},
		{"read-only volume", edits{job + ".mounts[0].readOnly": true}, job + ".mounts", []string{"without readOnly"}},
		{"checkpoints in the container", env("PERSIA_CKPT_DIR", "/ckpt"), variable + ".value", []string{"/ckpt is below no volume", "mountPath"}},
		{"checkpoints on the volume", env("PERSIA_CKPT_DIR", "/checkpoints/a"), variable + ".value", nil},
		// Variables.
		{"another NATS", env("PERSIA_NATS_URL", "nats://other:4222"), variable + ".name", []string{"another NATS than its own", "remove the variable"}},
		// Volumes and pools.
		{"directory of each node", shared(edits{"hostPath": edits{"path": "/var/lib/a"}}), job + ".mounts", []string{"keeps no checkpoint"}},
		{"a directory that fits", scratch(edits{"sizeLimit": "40Gi"}), job + ".volumes[0].emptyDir.sizeLimit", nil},
		{"a directory in memory", scratch(edits{"sizeLimit": "50Gi", "medium": "Memory"}), job + ".volumes[0].emptyDir.sizeLimit", nil},
		{"a directory on local SSDs", scratch(edits{"sizeLimit": "50Gi"}).And(edits{"persia:nodePools[1].localSsdCount": 4}), job + ".volumes[0].emptyDir.sizeLimit", nil},
		{"pods that never end", leftToOperator(edits{job + ".restartPolicy": "Always"}), job + ".restartPolicy", []string{"pods that have finished start again"}},
		{"pods that end", leftToOperator(edits{job + ".restartPolicy": "OnFailure"}), job + ".restartPolicy", nil},
		{"embeddings on spot machines", edits{"persia:nodePools[2].spot": true}, job + ".embeddingParameterServer.nodePool", []string{"the job loses its embeddings"}},
	})
}

// TestImage checks that the image of the operator, which can create pods, is fixed.
func TestImage(t *testing.T) {
	const path = "persia:operator.image"
	image := func(value any) edits { return leftToOperator(edits{path: value}) }
	testkit.Refused(t, []testkit.Refusal{
		{"none", image(nil), path, []string{"Required", "by its digest", "examples/training/Dockerfile"}},
		{"without a tag", image("persiaml/persia-cpu-runtime"), path, []string{`"persiaml/persia-cpu-runtime"`, "tomorrow", "write a digest"}},
		{"no image", image("Persia:1"), path, []string{`"Persia:1"`, "image reference"}},
	})
	for _, known := range []string{operatorImage, "registry.example.com/persia:0.1.dev251", strings.Replace(operatorImage, "@", ":latest@", 1)} {
		stack, err := testkit.Load(t, image(known))
		require.NoError(t, err, known)
		assert.Equal(t, known, stack.Operator.Image)
	}
}
