package gcp

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/config/input"
	"persia/sandbox/gcp/google"
	"persia/stack/effects"
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
  - name: table
    size: 100Gi
    accessModes: [ReadWriteOnce]
    persistentDisk: {disk: table, zones: [us-central1-a], create: {}}
  - name: regional
    size: 200Gi
    accessModes: [ReadWriteOnce]
    persistentDisk: {disk: regional, zones: [us-central1-a, us-central1-b], create: {type: pd-ssd}}
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
		file[key] = google.Clone(file[key])
		input.Values(file).Set(key+"."+path, value)
	}
}

const keyRing = "projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/"

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

// poolStackOf returns a stack file with one node pool, for nothing. settings replace the pool's; nil removes one.
func poolStackOf(t *testing.T, settings ...values) values {
	t.Helper()
	pool := values{"name": "workers", "machineType": "n2-standard-8", "nodes": 2}
	for _, s := range settings {
		maps.Copy(pool, s)
	}
	maps.DeleteFunc(pool, func(_ string, value any) bool { return value == nil })
	file := editable(t)
	file["persia:nodePools"], file["persia:storage"], file["persia:jobs"] = []any{pool}, []any{}, []any{}
	set("persia:nats", "size", 1)(file)
	return file
}

// edited makes an edit of a stack that is up, and holds what every edit must hold: the effects that the
// program announces are what becomes of the nodes and the jobs, and the stack is as its file says then.
func (e *engine) edited(t *testing.T, file values) outcome {
	t.Helper()
	before := e.nodes()
	e.up(file)
	assertHappened(t, e)
	assertNodes(t, e, before)
	assert.Equal(t, append(e.restarted(t), e.endedOfPEDL()...), e.saidToEnd(t))
	done := outcome{e.summary(), e.effects(), e.restarted(t), e.warned}
	assertSettled(t, e, file)
	return done
}

// outcome describes an edit: its steps, the effects that the program announced, the pods that restarted, and the warnings.
type outcome struct {
	summary  string
	effects  []string
	restarts []string
	warned   []string
}

// TestEditsOfTheStack edits the settings of a whole stack, one after another. The provider updates in
// place what Google Cloud updates in place, and GKE accepts the updates.
func TestEditsOfTheStack(t *testing.T) {
	exclusion := values{"name": "run", "start": "2026-12-01T00:00:00Z", "end": "2026-12-20T00:00:00Z"}
	e, file := newStack(t, "../.."), editable(t)
	e.up(file)
	for _, c := range []struct {
		key, path string
		value     any
		// want is the summary of the steps, or refused.
		want string
	}{
		{"cluster", "releaseChannel", "STABLE", "update Cluster"},
		{"cluster", "deletionProtection", true, "update Cluster"},
		{"cluster", "deletionProtection", false, "update Cluster"},
		{"cluster", "maintenance.startTime", "05:00", "update Cluster"},
		{"cluster", "maintenance.exclusions", []any{exclusion}, "update Cluster"},
		{"cluster", "maintenance.exclusions", []any{}, "update Cluster"},
		{"cluster", "privateEndpoint", true, "update Cluster"},
		{"cluster", "authorizedNetworks", []any{values{"name": "office", "cidr": "203.0.113.0/24"}}, "update Cluster"},
		{"cluster", "authorizedNetworks", []any{}, "update Cluster"},
		{"cluster", "logging.components", []any{}, "update Cluster"},
		{"cluster", "monitoring.components", []any{"SYSTEM_COMPONENTS"}, "update Cluster"},
		{"cluster", "monitoring.managedPrometheus", false, "delete PodMonitoring, delete Rules, update Cluster"},
		{"cluster", "monitoring.components", []any{}, "update Cluster"},
		{"cluster", "zones", []any{"us-central1-a", "us-central1-b"}, "update Cluster, update NodePool"},
		{"cluster", "systemPool.machineType", "e2-standard-8", "update NodePool"},
		{"cluster", "systemPool.nodes", 4, "update NodePool"},
		{"cluster", "encryption.secrets", keyRing + "secrets", "create CryptoKeyIAMMember, update Cluster"},
		{"cluster", "encryption.secrets", "", "delete Keys, keep CryptoKeyIAMMember, update Cluster"},
		{"cluster", "encryption.bootDisks", keyRing + "disks", "create CryptoKeyIAMMember, replace NodePool"},
		{"cluster", "imageStreaming", false, "replace NodePool"},
		{"cluster", "network.nodes", "10.8.0.0/20", "refused"},
		{"cluster", "network.nodes", "10.0.0.0/19", "update Subnetwork"},
		{"cluster", "network.nodes", "10.0.0.0/20", "refused"},
		{"storage", "0.gcsFuse.create.versioning", true, "update Bucket"},
		{"storage", "1.size", "2Ti", "update Instance, update PersistentVolume"},
		{"storage", "2.size", "200Gi", "update Disk, update PersistentVolume"},
		{"storage", "3.size", "300Gi", "update PersistentVolume, update RegionDisk"},
	} {
		t.Run(c.path, func(t *testing.T) {
			edit := maps.Clone(file)
			set("persia:"+c.key, c.path, c.value)(edit)
			if c.want == "refused" {
				assert.ErrorContains(t, e.tryUp(edit), ": Invalid value")
				assert.Empty(t, e.steps)
				return
			}
			file = edit
			done := e.edited(t, file)
			assert.Equal(t, c.want, done.summary)
			closes := c.path == "authorizedNetworks" && len(c.value.([]any)) == 0
			assert.Equal(t, closes, strings.Contains(strings.Join(done.warned, "\n"), "closes the control plane to 203.0.113.0/24"))
		})
	}
}

// TestEditsOfPools edits each setting of a node pool. Google Cloud applies the change as the field's tag
// change says, and the program says what becomes of the nodes.
func TestEditsOfPools(t *testing.T) {
	edits := poolEdits()
	edits["fewer nodes"] = edit{values{"nodes": 3}, values{"nodes": 1}}
	edits["a zone less"] = edit{values{"zones": []any{"us-central1-a", "us-central1-b"}}, values{"zones": []any{"us-central1-a"}}}
	edits["the last label"] = edit{values{"labels": values{"team": "ads"}}, values{"labels": values{}}}
	edits["the last taint"] = edit{values{"taints": []any{values{"key": "a", "value": "b", "effect": "NoSchedule"}}}, values{"taints": []any{}}}
	edits["one more, two less"] = edit{values{"nodes": 5, "upgrade": values{"maxSurge": 1, "maxUnavailable": 2}}, values{"machineType": "n2-standard-16"}}
	edits["one less"] = edit{values{"nodes": 5, "upgrade": values{"maxSurge": 0, "maxUnavailable": 1}}, values{"machineType": "n2-standard-16"}}
	// The text of the program by the name of the edit. Other edits have none.
	rounds := "GKE recreates the nodes of the pool workers, 1 at once, about 20 min"
	says := map[string]string{
		"MachineType":        "persia:nodePools[0].machineType was n2-standard-8 and is now n2-standard-16: " + rounds,
		"Disk":               "persia:nodePools[0].disk.type was pd-balanced and is now pd-ssd, persia:nodePools[0].disk.sizeGb was 100 and is now 200: " + rounds,
		"Zones":              "persia:nodePools[0]: GKE deletes nodes of the pool workers: all in us-central1-a",
		"a zone less":        "persia:nodePools[0]: GKE deletes nodes of the pool workers: all in us-central1-b",
		"fewer nodes":        "persia:nodePools[0]: GKE deletes nodes of the pool workers: 2 of 3 in us-central1-a, which it chooses",
		"FastSocket":         "persia:nodePools[0].fastSocket was not set and is now true: " + rounds,
		"one more, two less": "3 at once, about 20 min",
		"one less":           "1 at once, about 50 min",
	}
	tags := map[string]string{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.Pool]()) {
		if field.IsExported() {
			require.Contains(t, edits, field.Name, "write an edit of it")
			tags[field.Name] = field.Tag.Get("change")
		}
	}
	for name, c := range edits {
		t.Run(name, func(t *testing.T) {
			e := newStack(t, "../..")
			e.up(poolStackOf(t, c.before))
			assert.Empty(t, e.effects(), "a new stack")
			ran := map[resource.URN]map[string]any{}
			for urn, known := range e.state {
				ran[urn] = known.outputs.Mappable()
			}
			done := e.edited(t, poolStackOf(t, c.before, c.after))
			said := strings.Join(done.effects, "\n")
			switch tag := tags[name]; {
			case name == "Name":
				assert.Equal(t, "create NodePool, delete NodePool", done.summary)
				assert.Contains(t, said, "the pool workers is no longer in the stack file: GKE deletes its nodes")
				leaving := effects.Read(ran).Leaving([]config.Pool{{Name: "others", Nodes: new(2)}, {Name: "system"}})
				require.Len(t, leaving, 1)
				assert.Equal(t, []any{"workers", "n2-standard-8", 2}, []any{leaving[0].Name, leaving[0].MachineType, leaving[0].MostNodes()})
			case tag == "none":
				assert.Empty(t, done.summary)
			case tag == "replace":
				assert.Equal(t, "replace NodePool", done.summary)
				assert.Contains(t, said, "Google Cloud deletes all nodes of the pool workers")
			default:
				assert.Equal(t, "update NodePool", done.summary)
				assert.Contains(t, said, says[name])
				assert.Equal(t, says[name] == "", said == "", said)
			}
		})
	}
}

// TestReplacedCluster: the program refuses to replace the cluster while a job runs there, whatever creates its pods. If
// the stack file permits it, the pools and every object in the cluster are replaced with it, and the job restarts.
func TestReplacedCluster(t *testing.T) {
	for name, before := range map[string]func(values){
		"StatefulSets": func(values) {}, "a JobSet": ofJob("engine", "jobset"), "a job of the operator": byOperator,
	} {
		t.Run(name, func(t *testing.T) {
			e, file := newStack(t, "../.."), editable(t)
			before(file)
			e.up(file)
			set("persia:cluster", "network.controlPlane", "172.16.1.0/28")(file)
			assert.ErrorContains(t, e.tryUp(file), "where the jobs that run are: criteo. Restore the value")
			assert.Empty(t, e.steps)
			set("persia:cluster", "replace", "persia")(file)
			nodes := e.nodes()
			e.up(file)
			assertNodes(t, e, nodes)
			assert.Len(t, e.restarted(t), 4)
			said := strings.Join(e.effects(), "\n")
			assert.Contains(t, said, "this deletes the cluster persia with everything in it")
			assert.Contains(t, said, "criteo moves to the new cluster; there, it ")
			replaced := map[string]bool{}
			for _, s := range e.steps {
				replaced[s.kind+" "+s.name] = s.operation == "replace" || s.operation == "create"
			}
			for urn := range e.state {
				inside := slices.Contains([]string{"Cluster", "NodePool"}, string(urn.Type().Name()))
				assert.True(t, !inside || replaced[string(urn.Type().Name())+" "+urn.Name()], "%s stays", urn)
			}
			for urn := range e.objects {
				assert.True(t, urn.Type().Package() != "kubernetes" || replaced[string(urn.Type().Name())+" "+urn.Name()], "%s stays", urn)
			}
			assertSettled(t, e, file)
		})
	}
}
