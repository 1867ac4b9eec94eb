package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/internal/testkit"
)

type edits = testkit.Edits

// onOneNode has all of a job on one node, over a directory of it.
var onOneNode = edits{
	"persia:nodePools": []any{edits{"name": "all", "machineType": "a2-ultragpu-8g", "nodes": 1,
		"gpu": edits{"type": "nvidia-a100-80gb", "count": 8}}},
	"persia:storage[0].gcsFuse":                           nil,
	"persia:storage[0].hostPath":                          edits{"path": "/checkpoints"},
	"persia:jobs[0].nnWorker.nodePool":                    "all",
	"persia:jobs[0].dataloader.nodePool":                  "all",
	"persia:jobs[0].embeddingWorker.nodePool":             "all",
	"persia:jobs[0].embeddingParameterServer.nodePool":    "all",
	"persia:jobs[0].embeddingParameterServer.resources":   edits{"limits": edits{"cpu": 8, "memory": "100Gi"}},
	"persia:jobs[0].nnWorker.replicas":                    1,
	"persia:jobs[0].nnWorker.resources.requests":          edits{"cpu": 60, "memory": "500Gi"},
	"persia:jobs[0].embeddingWorker.resources.limits.cpu": "1500m",
}

func TestLoadAccepts(t *testing.T) {
	testkit.Accepted(t, map[string]edits{
		"the base":                        nil,
		"all on one node over hostPath":   onOneNode,
		"nothing but NATS":                edits{"persia:jobs": []any{}, "persia:nodePools": []any{}, "persia:storage": []any{}},
		"Ubuntu installer with a version": edits{"persia:nvidiaDriver.version": "550.90.12"},
		"attached GPUs": edits{"persia:nodePools[0]": edits{"name": "training", "machineType": "n1-standard-96", "nodes": 2,
			"gpu": edits{"type": "nvidia-tesla-v100", "count": 8}}, "persia:jobs[0].nnWorker.resources.limits.memory": "300Gi"},
		"three zones": edits{"persia:cluster.zones": []any{"us-central1-a", "us-central1-b", "us-central1-c"},
			"persia:nodePools[0].nodes": 3, "persia:nodePools[2].zones": []any{"us-central1-a"}},
		"NATS on a pool of its own": edits{"persia:nats.nodePool": "loaders"},
		"null is as if not written": edits{"persia:nodePools[2].gpu": json.RawMessage("null")},
	})
}

// TestAllProblemsAtOnce checks that Load reports the problems of decoding and of all topics
// together, sorted, and each mistake once.
func TestAllProblemsAtOnce(t *testing.T) {
	_, err := testkit.Load(t, edits{
		"persia:project":                                   nil,
		"persia:cluster.region":                            "us-central1-a",
		"persia:nodePools[1].name":                         7,
		"persia:nodePools[2].machinetype":                  "m1-ultramem-80",
		"persia:nodePools[2].nodes":                        "one",
		"persia:nvidiaDriver.installer":                    "apt",
		"persia:storage[0].size":                           "0",
		"persia:nats.size":                                 "three",
		"persia:jobs[0].embeddingParameterServer.replicas": 0,
		"persia:jobs[0].logLevel":                          "loud",
	})
	require.Error(t, err)
	assert.Equal(t, `stack configuration: 10 problems
persia:cluster.region: Invalid value: "us-central1-a": is a zone; write the region, us-central1, and the zone in zones
persia:jobs[0].embeddingParameterServer.replicas: Invalid value: 0: must be at least 1; omit it for the default
persia:jobs[0].logLevel: Invalid value: "loud": must be trace, debug, info, warn or error
persia:nats.size: Invalid value: "three": must be an integer, without quotes
persia:nodePools[1].name: Invalid value: 7: must be a string; put it in quotes
persia:nodePools[2].machinetype: unknown field; did you mean machineType?
persia:nodePools[2].nodes: Invalid value: "one": must be an integer, without quotes
persia:nvidiaDriver.installer: Invalid value: "apt": must be managed or ubuntu-daemonset
persia:project: Required value: write the id of the Google Cloud project, like my-project-123
persia:storage[0].size: Invalid value: "0": must be a quantity from 1Mi to 1Ei; without a unit it is in bytes, so write one, like 10Gi`, err.Error())
}

func TestEveryKeyMissing(t *testing.T) {
	_, err := config.Load(func(string) (string, bool) { return "", false }, nil)
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	required := []string{"persia:project", "persia:cluster", "persia:nodePools", "persia:jobs"}
	assert.Len(t, lines, 1+len(required))
	for _, key := range required {
		testkit.Says(t, err, key, "Required value: write")
	}
}

func TestDefaultsThatDepend(t *testing.T) {
	s := testkit.Must(testkit.Load(t, edits{
		"persia:cluster.zones":              []any{"us-central1-a", "us-central1-b", "us-central1-c"},
		"persia:cluster.deletionProtection": false,
		"persia:nodePools[0].nodes":         3,
		"persia:nodePools[1].machineType":   "c4-standard-32",
		"persia:nodePools[2].nodes":         3,
		"persia:nvidiaDriver.installer":     "managed",
		"persia:jobs[0].mounts":             nil,
		"persia:jobs[0].enableMetrics":      false,
		"persia:storage[0]":                 edits{"name": "local", "size": "1Gi", "hostPath": edits{"path": "/data"}},
		"persia:jobs[0].nnWorker.resources": edits{"limits": edits{"cpu": 1, "memory": "1Gi"}},
	}))(t)
	assert.Equal(t, 3, s.Cluster.SystemPool.Nodes)
	assert.False(t, s.Cluster.DeletionProtection)
	assert.Equal(t, s.Cluster.Zones, s.NodePools[1].Zones)
	assert.Equal(t, "hyperdisk-balanced", s.NodePools[1].Disk.Type)
	assert.Equal(t, "COS_CONTAINERD", s.NodePools[0].ImageType)
	assert.Equal(t, "DEFAULT", s.NVIDIADriver.Version)
	assert.Equal(t, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, s.Storage[0].AccessModes)
	assert.False(t, s.Jobs[0].EnableMetrics)
	assert.Equal(t, 1, s.Jobs[0].NNWorker.NprocPerNode)
}

// FuzzLoad replaces the value of one key of the base. What the program takes, an editor takes too.
func FuzzLoad(f *testing.F) {
	for i, key := range config.Keys() {
		text, ok := testkit.File(f, nil)(key)
		require.True(f, ok)
		f.Add(i, text)
		f.Add(i, `{"name": [1e999, null, {"": -1}]}`)
		f.Add(i, `{"name": [true]}`)
	}
	f.Fuzz(func(t *testing.T, which int, text string) {
		get, keys := testkit.File(t, nil), config.Keys()
		replaced := keys[uint(which)%uint(len(keys))]
		s, err := config.Load(func(key string) (string, bool) {
			if key == replaced {
				return text, true
			}
			return get(key)
		}, nil)
		if err != nil {
			assert.Nil(t, s)
			assert.NotEmpty(t, strings.Split(err.Error(), "\n")[1:])
			return
		}
		all, value := testkit.Parse(t, testkit.Base), any(text)
		_ = json.Unmarshal([]byte(text), &value) // or it is a text
		all[replaced] = value
		testkit.AssertInSchema(t, all)
	})
}

// withVolume gives the job of the base stack a Kubernetes volume that its dataloader mounts.
func withVolume(source edits, mountPath string) edits {
	return edits{"persia:jobs[0].volumes": []any{edits{"name": "data"}.And(source)},
		"persia:jobs[0].dataloader.volumeMounts": []any{edits{"name": "data", "mountPath": mountPath}}}
}

func hostPath(path string) edits { return edits{"hostPath": edits{"path": path}} }

// TestRefusesInput checks the messages for input that would otherwise fail, or do harm, long after `pulumi up`.
func TestRefusesInput(t *testing.T) {
	const resources, mount = "persia:jobs[0].dataloader.resources", "persia:jobs[0].mounts[0].mountPath"
	const limits, requests = resources + ".limits", resources + ".requests"
	const podMount, podVolume = "persia:jobs[0].dataloader.volumeMounts[0].mountPath", "persia:jobs[0].volumes[0].hostPath.path"
	asking := func(name string, amount any) edits {
		return edits{limits: edits{"cpu": 1, "memory": "12Gi", name: amount}}
	}
	env := func(name string) edits { return edits{"persia:jobs[0].env[0].name": name} }
	testkit.Refused(t, []testkit.Refusal{
		// Keys and types.
		{"key missing", edits{"persia:jobs": nil},
			"persia:jobs", []string{"Required", "[] for none"}},
		{"misspelt field that is required", edits{"persia:nodePools[2].machineType": nil, "persia:nodePools[2].machinetype": edits{}},
			"persia:nodePools[2].machinetype", []string{": unknown field; did you mean machineType?"}},
		{"number as the value of a variable", edits{"persia:jobs[0].env[0].value": 8},
			"persia:jobs[0].env[0].value", []string{"8", "put it in quotes"}},
		// Resources.
		{"extended resource", asking("example.com/fpga", 1), limits + "[example.com/fpga]", []string{`"1"`, `not a resource of any node of pool "loaders"`, "remove it"}},
		{"disk in bytes", asking("ephemeral-storage", 10), limits + "[ephemeral-storage]", []string{`"10"`, "in bytes", "without a unit is in bytes"}},
		{"memory without a unit", edits{limits + ".memory": 600}, limits + "[memory]", []string{`"600": is less than 1Mi`}},
		{"no CPU", edits{limits + ".cpu": 0}, limits + "[cpu]", []string{"more than 0"}},
		{"a request over the limit", edits{limits + ".cpu": 1, requests: edits{"cpu": 2}}, requests + "[cpu]", []string{`"2": must be at most 1, the limit`}},
		{"part of a GPU", asking("nvidia.com/gpu", "500m"), limits + "[nvidia.com/gpu]", []string{"whole number"}},
		{"GPUs without a limit", edits{requests: edits{"nvidia.com/gpu": 1}}, requests + "[nvidia.com/gpu]", []string{"write it only in limits"}},
		{"claims", edits{resources + ".claims": []any{edits{"name": "a"}}}, resources + ".claims", []string{"limits and requests"}},
		{"CPUs overflow", edits{resources: edits{"limits": edits{"cpu": "9E", "memory": "12Gi"}, "requests": edits{"cpu": 1}}}, limits + "[cpu]", []string{`"9E"`, "more than any machine has"}},
		{"memory overflows", edits{resources: edits{"limits": edits{"cpu": 1, "memory": "16Ei"}, "requests": edits{"memory": "1Gi"}}}, limits + "[memory]", []string{"more than any machine has"}},
		{"replicas overflow", edits{"persia:jobs[0].dataloader.replicas": 4294967297}, "persia:jobs[0].dataloader.replicas", []string{"4294967297", "at most 200000"}},
		// Directories.
		{"system directory of the node", withVolume(hostPath("/etc/kubernetes"), "/data"), podVolume, []string{`"/etc/kubernetes"`, "/etc, which belongs to the node", "/var/lib/data"}},
		{"read-only directory of Container-Optimized OS", withVolume(hostPath("/data"), "/data"), podVolume, []string{`"/data"`, "pool loaders", "read-only", "UBUNTU_CONTAINERD"}},
		{"a way around", withVolume(hostPath("/var/lib/../../etc"), "/data"), podVolume, []string{"must be absolute and without .."}},
		{"a way that ends elsewhere", withVolume(hostPath("/var/lib/../data"), "/data"), podVolume, []string{"must be absolute and without ..; write /var/data"}},
		{"mount in the kernel's files", edits{mount: "/proc/sys"}, mount, []string{"/proc, which the kernel keeps"}},
		{"volume of the job over devices", withVolume(edits{"emptyDir": edits{}}, "/dev"), podMount, []string{"overlaps with /dev/shm"}},
		// Images and variables.
		{"image with half a digest", edits{"persia:jobs[0].dataloader.image": "persia@sha256:12"}, "persia:jobs[0].dataloader.image", []string{"must be an image reference"}},
		{"pull secret twice", edits{"persia:jobs[0].imagePullSecrets": []any{edits{"name": "a"}, edits{"name": "a"}}}, "persia:jobs[0].imagePullSecrets[1].name", []string{"Duplicate", `"a"`, "imagePullSecrets[0]"}},
		{"variable of the script", env("PERSIA_ROLE"), "persia:jobs[0].env[0].name", []string{"PERSIA_ROLE", "set by replicas and nprocPerNode"}},
		// Names.
		{"pool of GKE's", edits{"persia:nodePools[3]": edits{"name": "default-pool", "machineType": "n2-standard-8", "nodes": 1}}, "persia:nodePools[3].name", []string{"default-pool", "choose another"}},
		{"taint of Kubernetes", edits{"persia:nodePools[1].taints[0].key": "node.kubernetes.io/unreachable"}, "persia:nodePools[1].taints[0].key", []string{"kubernetes.io", "your own prefix"}},
		{"sidecar in bytes", edits{"persia:storage[0].gcsFuse.sidecar": edits{"memory": "256"}}, "persia:storage[0].gcsFuse.sidecar.memory", []string{`"256"`, "in bytes"}},
		// Disks.
		{"boot disk below the image", edits{"persia:nodePools[1].disk": edits{"sizeGb": 11}}, "persia:nodePools[1].disk.sizeGb", []string{"from 12", "image"}},
		{"boot disk below the image with a driver", edits{"persia:nodePools[0].disk": edits{"sizeGb": 14}}, "persia:nodePools[0].disk.sizeGb", []string{"from 15", "image"}},
	}, "replicas overflow")
}

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
