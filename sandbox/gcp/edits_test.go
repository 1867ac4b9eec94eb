package gcp

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/config"
)

// editedStack has something of all that the documented edits are about.
const editedStack = `
persia:project: my-project
persia:cluster:
  name: persia
  region: us-central1
  zones: [us-central1-a]
  deletionProtection: false
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
  resources: {limits: {cpu: 500m, memory: 2Gi}}
persia:jobs:
  - name: criteo
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

const keyRing = "projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/"

// poolStack is a stack with one node pool, which nothing is assigned to.
const poolStack = `
persia:project: my-project
persia:cluster: {name: persia, region: us-central1, zones: [us-central1-a], deletionProtection: false}
persia:nodePools: []
persia:machineTypes: {}
persia:nvidiaDriver: {installer: managed}
persia:storage: []
persia:nats: {size: 1, resources: {limits: {cpu: 500m, memory: 2Gi}}}
persia:jobs: []
`

// gpuPoolSettings are the settings of a pool whose machines come with GPUs.
var gpuPoolSettings = values{"machineType": "a2-highgpu-8g", "gpu": values{"type": "nvidia-tesla-a100", "count": 8}}

// edit is one of a setting, from one value to another.
type edit struct{ before, after values }

// poolEdits returns one edit of each setting of a node pool, by its field.
func poolEdits() map[string]edit {
	autoscaled := values{"nodes": nil, "autoscaling": values{"minNodes": 0, "maxNodes": 4}}
	// What is not given before is the pool as it is.
	return map[string]edit{
		"Name":               {nil, values{"name": "others"}},
		"MachineType":        {nil, values{"machineType": "n2-standard-16"}},
		"Zones":              {nil, values{"zones": []any{"us-central1-b"}}},
		"Nodes":              {nil, values{"nodes": 3}},
		"Autoscaling":        {autoscaled, values{"autoscaling": values{"minNodes": 1, "maxNodes": 5}}},
		"Spot":               {nil, values{"spot": true}},
		"QueuedProvisioning": {autoscaled, values{"queuedProvisioning": true}},
		"Reservation":        {nil, values{"reservation": "workers"}},
		"CompactPlacement":   {nil, values{"compactPlacement": true}},
		"GPU": {
			values{"machineType": "n1-standard-8", "gpu": values{"type": "nvidia-tesla-t4", "count": 1}},
			values{"gpu": values{"type": "nvidia-tesla-t4", "count": 2}},
		},
		"ImageType":      {nil, values{"imageType": "UBUNTU_CONTAINERD"}},
		"Disk":           {nil, values{"disk": values{"type": "pd-ssd", "sizeGb": 200}}},
		"LocalSSDs":      {nil, values{"localSsdCount": 2}},
		"FastSocket":     {gpuPoolSettings, values{"fastSocket": true}},
		"SpareNodes":     {nil, values{"spareNodes": 1}},
		"MaxPodsPerNode": {nil, values{"maxPodsPerNode": 32}},
		"Upgrade":        {nil, values{"upgrade": values{"maxSurge": 2}}},
		"Labels":         {nil, values{"labels": values{"team": "ads"}}},
		"Taints":         {nil, values{"taints": []any{values{"key": "team", "value": "ads", "effect": "NoSchedule"}}}},
	}
}

// poolStackOf returns the configuration of a stack with one node pool. settings replace the
// pool's settings, and nil removes one.
func poolStackOf(t *testing.T, settings ...values) values {
	t.Helper()
	pool := values{"name": "workers", "machineType": "n2-standard-8", "nodes": 2}
	for _, s := range settings {
		maps.Copy(pool, s)
	}
	maps.DeleteFunc(pool, func(_ string, value any) bool { return value == nil })
	var file values
	require.NoError(t, yaml.Unmarshal([]byte(poolStack), &file))
	file["persia:nodePools"] = []any{pool}
	return file
}

// summary returns the operations of the last up and the kinds that they change, sorted.
func (e *engine) summary() string {
	var all []string
	for _, s := range e.steps {
		all = append(all, s.operation+" "+s.kind)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// TestEditsOfTheCluster edits each setting of the cluster of a whole stack, one after another. The
// provider updates in place what Google Cloud updates in place, GKE accepts the updates, and the next up
// finds nothing to do. To replace the cluster, the stack file must permit it while a job runs there.
func TestEditsOfTheCluster(t *testing.T) {
	const everything = "replace Cluster"
	exclusion := values{"name": "run", "start": "2026-12-01T00:00:00Z", "end": "2026-12-20T00:00:00Z"}
	e, file := newStack(t, "../.."), editable(t)
	e.up(configuration(t, file))
	for _, c := range []struct {
		path  string
		value any
		// want is the summary of the steps, or refused.
		want string
	}{
		{"releaseChannel", "STABLE", "update Cluster"},
		{"deletionProtection", true, "update Cluster"},
		{"deletionProtection", false, "update Cluster"},
		{"maintenance.startTime", "05:00", "update Cluster"},
		{"maintenance.exclusions", []any{exclusion}, "update Cluster"},
		{"maintenance.exclusions", []any{}, "update Cluster"},
		{"privateEndpoint", true, "update Cluster"},
		{"authorizedNetworks", []any{values{"name": "office", "cidr": "203.0.113.0/24"}}, "update Cluster"},
		{"authorizedNetworks", []any{}, "update Cluster"},
		{"logging.components", []any{"SYSTEM_COMPONENTS"}, "update Cluster"},
		{"monitoring.components", []any{"SYSTEM_COMPONENTS"}, "update Cluster"},
		{"monitoring.managedPrometheus", false, "delete PodMonitoring, update Cluster"},
		{"zones", []any{"us-central1-a", "us-central1-b"}, "update Cluster, update NodePool"},
		{"systemPool.machineType", "e2-standard-8", "update NodePool"},
		{"systemPool.nodes", 4, "update NodePool"},
		{"encryption.secrets", keyRing + "secrets", "create CryptoKeyIAMMember, update Cluster"},
		{"encryption.bootDisks", keyRing + "disks", "create CryptoKeyIAMMember, replace NodePool"},
		{"imageStreaming", false, "replace NodePool"},
		{"network.nodes", "10.8.0.0/20", "refused"},
		{"network.nodes", "10.0.0.0/21", "refused"},
		{"network.nodes", "10.0.0.0/19", "update Subnetwork"},
		{"network.nodes", "10.0.0.0/20", "refused"},
		{"network.pods", "10.64.0.0/13", "refused"},
		{"network.pods", "10.64.0.0/14", ""}, // the default
		{"network.services", "10.2.0.0/20", "refused"},
		{"network.controlPlane", "172.16.1.0/28", everything},
	} {
		t.Run(c.path, func(t *testing.T) {
			e, edited := e, maps.Clone(file)
			if c.want == everything {
				e, edited = newStack(t, "../.."), editable(t)
				e.up(configuration(t, edited))
			}
			set("persia:cluster", c.path, c.value)(edited)
			if c.want == "refused" {
				assert.ErrorContains(t, e.tryUp(configuration(t, edited)), "persia:cluster."+c.path+": Invalid value")
				assert.Empty(t, e.steps)
				return
			}
			if c.want == everything {
				assert.ErrorContains(t, e.tryUp(configuration(t, edited)), "persia:cluster.replace: persia to end them")
				assert.Empty(t, e.steps)
				set("persia:cluster", "replace", "persia")(edited)
			} else {
				file = edited
			}
			nodes := e.nodes()
			e.up(configuration(t, edited))
			if c.want == everything {
				assert.Contains(t, e.effects()[0], "this deletes the cluster persia with everything in it")
				assert.Contains(t, e.effects()[1], "persia:jobs[0]: the job criteo ends with the cluster persia, and begins in the new one")
				assertEverythingReplaced(t, e)
			} else {
				assert.Equal(t, c.want, e.summary())
			}
			assertNodes(t, e, nodes)
			e.up(configuration(t, edited))
			assert.Empty(t, e.steps, "a second up")
			assert.Empty(t, e.refresh(), "drift")
		})
	}
}

// assertEverythingReplaced holds that the pools and every object in the cluster are replaced with it.
func assertEverythingReplaced(t *testing.T, e *engine) {
	t.Helper()
	replaced := map[string]bool{}
	for _, s := range e.steps {
		replaced[s.kind+" "+s.name] = s.operation == "replace" || s.operation == "create"
	}
	assert.True(t, replaced["Cluster persia"])
	for urn := range e.state {
		assert.True(t, urn.Type().Name() != "NodePool" || replaced["NodePool "+urn.Name()], "%s stays", urn)
	}
	for urn := range e.objects {
		assert.True(t, urn.Type().Package() != "kubernetes" || replaced[string(urn.Type().Name())+" "+urn.Name()], "%s stays", urn)
	}
}

// TestEditsOfPools edits each setting of a node pool. Google Cloud applies the change as the field's tag
// change says, the program says what becomes of the nodes, and the next up finds nothing to do.
func TestEditsOfPools(t *testing.T) {
	edits := poolEdits()
	edits["fewer nodes"] = edit{values{"nodes": 3}, values{"nodes": 1}}
	edits["a zone less"] = edit{values{"zones": []any{"us-central1-a", "us-central1-b"}}, values{"zones": []any{"us-central1-a"}}}
	edits["the last label"] = edit{values{"labels": values{"team": "ads"}}, values{"labels": values{}}}
	edits["the last taint"] = edit{values{"taints": []any{values{"key": "a", "value": "b", "effect": "NoSchedule"}}}, values{"taints": []any{}}}
	// The text of the program by the name of the edit. Other edits have none.
	rounds := "GKE drains and recreates the nodes of the pool workers, 1 at once. This takes 2 rounds, about 20m if a round takes 10m"
	says := map[string]string{
		"MachineType": "persia:nodePools[0].machineType was n2-standard-8 and is now n2-standard-16: " + rounds,
		"Disk":        "persia:nodePools[0].disk.type was pd-balanced and is now pd-ssd, persia:nodePools[0].disk.sizeGb was 100 and is now 200: " + rounds,
		"Zones":       "persia:nodePools[0]: GKE deletes nodes of the pool workers: all in us-central1-a",
		"a zone less": "persia:nodePools[0]: GKE deletes nodes of the pool workers: all in us-central1-b",
		"fewer nodes": "persia:nodePools[0]: GKE deletes nodes of the pool workers: 2 of 3 in us-central1-a, which it chooses",
		"FastSocket":  "persia:nodePools[0].fastSocket was not set and is now true: " + rounds,
	}
	tags := map[string]string{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.Pool]()) {
		require.Contains(t, edits, field.Name, "write an edit of it")
		tags[field.Name] = field.Tag.Get("change")
	}
	for name, c := range edits {
		t.Run(name, func(t *testing.T) {
			e := newStack(t, "../..")
			e.up(configuration(t, poolStackOf(t, c.before)))
			assert.Empty(t, e.effects(), "a new stack")
			nodes := e.nodes()
			edited := configuration(t, poolStackOf(t, c.before, c.after))
			e.up(edited)
			said := strings.Join(e.effects(), "\n")
			switch tag := tags[name]; {
			case name == "Name":
				assert.Equal(t, "create NodePool, delete NodePool", e.summary())
				assert.Contains(t, said, "persia:nodePools: the pool workers is no longer in the stack file. GKE deletes its nodes")
			case tag == "none":
				assert.Empty(t, e.steps)
			case tag == "replace":
				assert.Equal(t, "replace NodePool", e.summary())
				assert.Contains(t, said, "Google Cloud deletes all nodes of the pool workers")
			default:
				assert.Equal(t, "update NodePool", e.summary())
				assert.Contains(t, said, says[name])
				assert.Equal(t, says[name] == "", said == "", said)
			}
			assertNodes(t, e, nodes)
			e.up(edited)
			assert.Empty(t, e.steps, "a second up")
		})
	}
}

// TestEditsOfJobs edits settings of a running job of a whole stack, one after another. A pod restarts if
// its template changes, and the program says so.
func TestEditsOfJobs(t *testing.T) {
	all := []string{"criteo-dataloader", "criteo-embedding-ps", "criteo-embedding-worker", "criteo-nn-worker"}
	one := []string{"criteo-dataloader"}
	env := func(name string) []any { return []any{values{"name": name, "value": "set"}} }
	scratch := both(ofJob("volumes", []any{values{"name": "scratch", "emptyDir": values{}}}),
		ofJob("dataloader.volumeMounts", []any{values{"name": "scratch", "mountPath": "/scratch"}}))
	e, file := newStack(t, "../.."), editable(t)
	e.up(configuration(t, file))
	for _, c := range []struct {
		name string
		edit func(values)
		want []string
	}{
		{"env", ofJob("env", env("OF_THE_JOB")), all},
		{"persiaEnv", ofJob("persiaEnv.PERSIA_GLOBAL_CONFIG", "/workspace/other.yml"), all},
		{"the entry script of a role", ofJob("persiaEnv.PERSIA_DATALOADER_ENTRY", "/workspace/other.py"), one},
		{"logLevel", ofJob("logLevel", "debug"), all},
		{"mounts", ofJob("mounts", []any{values{"volume": "checkpoints", "mountPath": "/data"}}), all},
		{"volumes", scratch, one},
		{"env of a role", ofJob("dataloader.env", env("OF_THE_ROLE")), one},
		{"mounts of a role", ofJob("dataloader.mounts", []any{values{"volume": "shared", "mountPath": "/shared"}}), one},
		{"resources of a role", ofJob("dataloader.resources.limits.memory", "5Gi"), one},
		{"nodePool of a role", ofJob("dataloader.nodePool", "training"), one},
		{"image of a role", ofJob("dataloader.image", "example.com/training/criteo@sha256:"+strings.Repeat("a", 64)), one},
		{"replicas of a role", ofJob("dataloader.replicas", 5), []string{"criteo-dataloader", "criteo-nn-worker"}},
		{"runId", ofJob("runId", "second"), all},
		{"size of a volume", set("persia:storage", "0.size", "2Ti"), nil},
		{"autoscaling", set("persia:nodePools", "0", values{
			"name": "workers", "machineType": "n2-standard-32", "autoscaling": values{"minNodes": 4, "maxNodes": 6},
		}), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.edit(file)
			e.up(configuration(t, file))
			assert.NotEmpty(t, e.steps)
			assert.Equal(t, c.want, e.restarted(t))
			assert.Equal(t, c.want, e.saidToRestart(t))
		})
	}
	e.up(configuration(t, file))
	assert.Empty(t, e.steps, "a last up")
}
