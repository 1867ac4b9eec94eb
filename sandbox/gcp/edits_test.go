package gcp

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// editedStack has something of all that the documented edits are about.
const editedStack = `
persia:project: my-project
persia:cluster:
  name: persia
  region: us-central1
  zones: [us-central1-a]
  deletionProtection: false
  backup: {plan: {schedule: 0 4 * * *}}
persia:nodePools:
  - {name: workers, machineType: n2-standard-32, nodes: 4}
  - {name: training, machineType: g2-standard-32, nodes: 2, gpu: {type: nvidia-l4, count: 1}}
persia:machineTypes: {}
persia:nvidiaDriver: {installer: managed}
persia:storage:
  - name: checkpoints
    size: 1Ti
    gcsFuse: {bucket: my-project-checkpoints, create: {}}
  - name: shared
    size: 1Ti
    filestore: {instance: shared, share: vol1, location: us-central1-a, create: {tier: ZONAL}}
persia:nats:
  size: 3
  users: [{name: first, password: word}]
  resources: {limits: {cpu: 500m, memory: 2Gi}}
persia:jobs:
  - name: criteo
    nats: {credentials: true}
    persiaEnv:
      PERSIA_GLOBAL_CONFIG: /workspace/global_config.yml
      PERSIA_EMBEDDING_CONFIG: /workspace/embedding_config.yml
      PERSIA_NN_WORKER_ENTRY: /workspace/train.py
      PERSIA_DATALOADER_ENTRY: /workspace/data_loader.py
    mounts:
      - {volume: checkpoints, mountPath: /checkpoints}
    nnWorker:
      nodePool: training
      replicas: 2
      resources: {limits: {cpu: "12", memory: 24Gi, nvidia.com/gpu: "1"}}
    dataloader:
      nodePool: workers
      replicas: 4
      resources: {limits: {cpu: "1", memory: 4Gi}}
    embeddingWorker:
      nodePool: workers
      replicas: 2
      resources: {limits: {cpu: "4", memory: 8Gi}}
    embeddingParameterServer:
      nodePool: workers
      replicas: 2
      resources: {limits: {cpu: "4", memory: 8Gi}}
`

// editable is editedStack as a file.
func editable(t *testing.T) values {
	t.Helper()
	var file values
	require.NoError(t, yaml.Unmarshal([]byte(editedStack), &file))
	return file
}

// documentedEdit is an edit of a stack file. Before is an edit that the file needs first, if any.
type documentedEdit struct{ before, edit func(values) }

// set writes a value at a path below a key. A number is a position in a list.
func set(key, path string, value any) func(values) {
	return func(file values) {
		file[key] = put(file[key], strings.Split(path, "."), value)
	}
}

func put(in any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if list, isList := in.([]any); isList {
		changed := slices.Clone(list)
		i, err := strconv.Atoi(path[0])
		if err != nil {
			panic(err)
		}
		changed[i] = put(list[i], path[1:], value)
		return changed
	}
	object, _ := in.(values)
	changed := maps.Clone(object)
	if changed == nil {
		changed = values{}
	}
	changed[path[0]] = put(object[path[0]], path[1:], value)
	return changed
}

// withoutStorage takes away what needs GKE's drivers, the identities of pods, and the
// agent of backups.
func withoutStorage(file values) {
	file["persia:storage"] = []any{}
	delete(file["persia:jobs"].([]any)[0].(values), "mounts")
	delete(file["persia:cluster"].(values), "backup")
}

const keyRing = "projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/"

// clusterEdits returns one edit of each setting of the cluster, and one of its project.
func clusterEdits() map[string]documentedEdit {
	edits := map[string]documentedEdit{}
	for path, value := range map[string]any{
		"zones":                        []any{"us-central1-a", "us-central1-b"},
		"releaseChannel":               "STABLE",
		"deletionProtection":           true,
		"maintenance.startTime":        "05:00",
		"maintenance.exclusions":       []any{values{"name": "run", "start": "2026-12-01T00:00:00Z", "end": "2026-12-20T00:00:00Z"}},
		"privateNodes":                 false,
		"privateEndpoint":              true,
		"authorizedNetworks":           []any{values{"name": "office", "cidr": "203.0.113.0/24"}},
		"network.nodes":                "10.0.0.0/19",
		"network.pods":                 "10.128.0.0/14",
		"network.services":             "10.2.0.0/20",
		"network.controlPlane":         "172.16.1.0/28",
		"network.flowLogs":             true,
		"network.intranodeVisibility":  true,
		"dataplaneV2":                  false,
		"nodeRoles":                    []any{"roles/storage.objectViewer"},
		"shieldedNodes":                false,
		"binaryAuthorization":          false,
		"securityPosture":              "DISABLED",
		"encryption.secrets":           keyRing + "secrets",
		"encryption.bootDisks":         keyRing + "disks",
		"replace":                      "persia",
		"systemPool.machineType":       "e2-standard-8",
		"systemPool.nodes":             4,
		"autoscalingProfile":           "BALANCED",
		"imageStreaming":               false,
		"logging.components":           []any{"SYSTEM_COMPONENTS"},
		"monitoring.components":        []any{"SYSTEM_COMPONENTS"},
		"monitoring.managedPrometheus": false,
		"costManagement":               false,
		"backup.plan.schedule":         "0 5 * * *",
		"backup.plan.retainDays":       30,
	} {
		edits[path] = documentedEdit{nil, set("persia:cluster", path, value)}
	}
	for path, value := range map[string]any{
		"name":                      "other",
		"workloadIdentity":          false,
		"csiDrivers.persistentDisk": false,
		"csiDrivers.filestore":      false,
		"csiDrivers.gcsFuse":        false,
		"backup.agent":              false,
	} {
		edits[path] = documentedEdit{withoutStorage, set("persia:cluster", path, value)}
	}
	// TestKubeDNSAfterCloudDNS makes this edit in another stack.
	edits["dns"] = documentedEdit{func(values) {}, set("persia:cluster", "dns", "KUBE_DNS")}
	edits["persia:project"] = documentedEdit{withoutStorage, func(file values) { file["persia:project"] = "other-project" }}
	edits["region"] = documentedEdit{withoutStorage, func(file values) {
		set("persia:cluster", "region", "us-east1")(file)
		set("persia:cluster", "zones", []any{"us-east1-b"})(file)
	}}
	return edits
}

// jobEdits returns one edit of each setting that docs/guides/operations.md lists for running
// training jobs, by the setting and whose it is.
func jobEdits() map[string]documentedEdit {
	edits := map[string]documentedEdit{}
	add := func(name, path string, value any) {
		edits[name] = documentedEdit{nil, set("persia:jobs", "0."+path, value)}
	}
	env := func(name string) []any { return []any{values{"name": name, "value": "set"}} }
	add("env of a job", "env", env("OF_THE_JOB"))
	add("persiaEnv of a job", "persiaEnv.PERSIA_GLOBAL_CONFIG", "/workspace/other.yml")
	add("the entry script of a role in persiaEnv", "persiaEnv.PERSIA_DATALOADER_ENTRY", "/workspace/other.py")
	add("logLevel of a job", "logLevel", "debug")
	add("mounts of a job", "mounts", []any{values{"volume": "checkpoints", "mountPath": "/data"}})
	edits["volumes of a job"] = documentedEdit{nil, func(file values) {
		set("persia:jobs", "0.volumes", []any{values{"name": "scratch", "emptyDir": values{}}})(file)
		set("persia:jobs", "0.dataloader.volumeMounts", []any{values{"name": "scratch", "mountPath": "/scratch"}})(file)
	}}
	add("env of a role", "dataloader.env", env("OF_THE_ROLE"))
	add("mounts of a role", "dataloader.mounts", []any{values{"volume": "shared", "mountPath": "/shared"}})
	add("resources of a role", "dataloader.resources.limits.memory", "5Gi")
	add("nodePool of a role", "dataloader.nodePool", "training")
	add("image of a role", "dataloader.image", "example.com/training/criteo@sha256:"+strings.Repeat("a", 64))
	add("replicas of a role", "dataloader.replicas", 5)
	// With eight gibibytes of memory, each of four files has two.
	add("hashmapShards of a job", "hashmapShards", 4)
	edits["sidecar of a bucket"] = documentedEdit{nil, set("persia:storage", "0.gcsFuse.sidecar.memory", "512Mi")}
	add("runId", "runId", "second")
	add("suspend", "suspend", true)
	edits["size of a volume"] = documentedEdit{nil, set("persia:storage", "0.size", "2Ti")}
	edits["autoscaling"] = documentedEdit{nil, set("persia:nodePools", "0", values{
		"name": "workers", "machineType": "n2-standard-32", "autoscaling": values{"minNodes": 4, "maxNodes": 6},
	})}
	return edits
}
