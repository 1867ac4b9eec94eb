package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"persia/config/cluster"
	"persia/config/nodepool"
	"persia/internal/schematest"
)

// base is a stack file that is valid. Every case starts from it.
const base = `
config:
  persia:project: persia-project
  persia:cluster:
    name: persia
    region: us-central1
    zones: [us-central1-a]
    authorizedNetworks:
      - {name: office, cidr: 203.0.113.0/24}
  persia:nodePools:
    - name: trainers
      machineType: a2-highgpu-8g
      nodes: 2
      gpu: {type: nvidia-tesla-a100, count: 8}
    - name: loaders
      machineType: n2-highmem-32
      autoscaling: {minNodes: 0, maxNodes: 4}
      labels: {team: ranking}
      taints:
        - {key: dedicated, value: loaders, effect: NoSchedule}
    - name: ps
      machineType: m1-ultramem-160
      nodes: 1
  persia:machineTypes: {}
  persia:nvidiaDriver:
    installer: ubuntu-daemonset
  persia:storage:
    - name: checkpoints
      size: 10Ti
      gcsFuse: {bucket: persia-checkpoints}
  persia:nats:
    size: 3
    resources:
      limits: {cpu: 500m, memory: 2Gi}
  persia:jobs:
    - name: train
      env:
        - {name: NCCL_DEBUG, value: INFO}
      persiaEnv:
        PERSIA_GLOBAL_CONFIG: /workspace/config/global_config.yml
        PERSIA_EMBEDDING_CONFIG: /workspace/config/embedding_config.yml
        PERSIA_NN_WORKER_ENTRY: /workspace/train.py
        PERSIA_DATALOADER_ENTRY: /workspace/data_loader.py
      mounts:
        - {volume: checkpoints, mountPath: /checkpoints}
      nnWorker:
        replicas: 2
        nodePool: trainers
        resources:
          limits: {cpu: 80, memory: 600Gi, nvidia.com/gpu: 8}
      dataloader:
        replicas: 8
        nodePool: loaders
        resources:
          limits: {cpu: 1, memory: 12Gi}
      embeddingWorker:
        replicas: 2
        nodePool: loaders
        resources:
          limits: {cpu: 28, memory: 100Gi}
      embeddingParameterServer:
        replicas: 1
        nodePool: ps
        resources:
          limits: {cpu: 80, memory: 2500Gi}
  persia:pedl: {}
`

// edits are values by their path, the path as errors print it. A nil removes
// what is there; a path one behind the end of a list adds to it.
type edits map[string]any

// leadsToMore are the mistakes that make other parts of the stack wrong.
var leadsToMore = []string{
	"more nodes than GKE takes", "zone twice", "system pool uneven",
	"pool name twice", "role missing", "role in a stack without pools",
}

// TestLoadRefuses lists what each mistake is answered with: the path, and parts
// of the line, the value and the remedy among them.
func TestLoadRefuses(t *testing.T) {
	testRefused(t, []refusal{
		// Keys and types.
		{"key missing", edits{"persia:jobs": nil},
			"persia:jobs", []string{"Required", "[] for none"}},
		{"key empty", edits{"persia:jobs": ""},
			"persia:jobs", []string{"Required", "[] for none"}},
		{"key of another type", edits{"persia:cluster": "persia"},
			"persia:cluster", []string{`"persia"`, "must be an object"}},
		{"list instead of an object", edits{"persia:nats": []any{1}},
			"persia:nats", []string{"must be an object (it is a list)"}},
		{"object instead of a list", edits{"persia:storage": edits{"name": "a"}},
			"persia:storage", []string{"must be a list (it is an object)"}},
		{"misspelt field", edits{"persia:nodePools[2].machinetype": "x"},
			"persia:nodePools[2].machinetype", []string{": unknown field; did you mean machineType?"}},
		{"field that is like none", edits{"persia:storage[0].gcsFuse.directory": "x"},
			"persia:storage[0].gcsFuse.directory", []string{"unknown field; the fields here are bucket, create, sidecar"}},
		{"misspelt field of an embedded struct", edits{"persia:jobs[0].nnWorker.replcas": 2},
			"persia:jobs[0].nnWorker.replcas", []string{"did you mean replicas?"}},
		{"misspelt field of a Kubernetes type", edits{"persia:jobs[0].env[0].valueForm": 2},
			"persia:jobs[0].env[0].valueForm", []string{"did you mean valueFrom?"}},
		{"text for an integer", edits{"persia:nats.size": "three"},
			"persia:nats.size", []string{`"three"`, "must be an integer"}},
		{"fraction for an integer", edits{"persia:nats.size": 8.5},
			"persia:nats.size", []string{"8.5", "must be an integer"}},
		{"integer that is too large", edits{"persia:nats.size": json.Number("99999999999999999999")},
			"persia:nats.size", []string{"must be an integer"}},
		{"zero for a default", edits{"persia:nats.maxPayload": 0},
			"persia:nats.maxPayload", []string{"0", "leave the field out for its default"}},
		{"number for a string", edits{"persia:nats.version": 2.1},
			"persia:nats.version", []string{"2.1", "put it in quotes"}},
		{"number as the value of a variable", edits{"persia:jobs[0].env[0].value": 8},
			"persia:jobs[0].env[0].value", []string{"8", "put it in quotes"}},
		{"text for a boolean", edits{"persia:cluster.deletionProtection": "yes"},
			"persia:cluster.deletionProtection", []string{`"yes"`, "true or false"}},
		{"quantity with a space", edits{"persia:jobs[0].dataloader.resources.limits.memory": "12 Gi"},
			"persia:jobs[0].dataloader.resources.limits[memory]", []string{`"12 Gi"`, "a quantity like"}},
		{"quantity with an exponent", edits{"persia:jobs[0].dataloader.resources.limits.memory": "1e99999999"},
			"persia:jobs[0].dataloader.resources.limits[memory]", []string{"1e99999999", "a quantity like"}},
		{"quantity that is a list", edits{"persia:jobs[0].dataloader.resources.limits.memory": []any{}},
			"persia:jobs[0].dataloader.resources.limits[memory]", []string{"a quantity like", "it is a list"}},

		// Project and cluster.
		{"project with a capital", edits{"persia:project": "Persia"},
			"persia:project", []string{`"Persia"`, "6 to 30", "gcloud projects list"}},
		{"cluster without a name", edits{"persia:cluster.name": nil},
			"persia:cluster.name", []string{"Required", "write a name"}},
		{"cluster name with a capital", edits{"persia:cluster.name": "Persia"},
			"persia:cluster.name", []string{`"Persia"`, "lower case"}},
		{"cluster name too long", edits{"persia:cluster.name": "a-cluster-with-a-long-name"},
			"persia:cluster.name", []string{"26 characters", "at most 24", "NAME-nodes", "shorter"}},
		{"zone for a region", edits{"persia:cluster.region": "us-central1-a"},
			"persia:cluster.region", []string{"is a zone", "write the region, us-central1"}},
		{"region misspelt", edits{"persia:cluster.region": "us_central1"},
			"persia:cluster.region", []string{`"us_central1"`, "like us-central1"}},
		{"no zones for a machine that few have", edits{"persia:cluster.zones": []any{}, "persia:nodePools[0].zones": []any{"us-central1-a"}},
			"persia:nodePools[2].zones", []string{"Required", "m1-ultramem-160", "the zones of the cluster", "gcloud compute machine-types list"}},
		{"nodes over the zones that GKE chooses", edits{"persia:cluster.zones": nil, "persia:nodePools[0].zones": []any{"us-central1-a"}, "persia:nodePools[2].zones": []any{"us-central1-a"},
			"persia:nodePools[3]": edits{"name": "more", "machineType": "n2-standard-8", "nodes": 4}},
			"persia:nodePools[3].nodes", []string{"4", "3 zones", "write 3 or 6"}},
		{"zone of another region", edits{"persia:cluster.zones[0]": "us-east1-b"},
			"persia:cluster.zones[0]", []string{`"us-east1-b"`, "region us-central1", "us-central1-a"}},
		{"zone twice", edits{"persia:cluster.zones[1]": "us-central1-a"},
			"persia:cluster.zones[1]", []string{"Duplicate", `"us-central1-a"`, "once"}},
		{"release channel unknown", edits{"persia:cluster.releaseChannel": "regular"},
			"persia:cluster.releaseChannel", []string{`"regular"`, "RAPID, REGULAR or STABLE"}},
		{"system pool of one node", edits{"persia:cluster.systemPool.nodes": 1},
			"persia:cluster.systemPool.nodes", []string{"1", "at least 2"}},
		{"system pool of no node in a cluster to try things on", edits{"persia:cluster.systemPool.nodes": -1, "persia:cluster.deletionProtection": false},
			"persia:cluster.systemPool.nodes", []string{"-1", "at least 1"}},
		{"system pool uneven", edits{"persia:cluster.zones[1]": "us-central1-b", "persia:cluster.systemPool.nodes": 3},
			"persia:cluster.systemPool.nodes", []string{"3", "2 zones", "write 2 or 4"}},
		{"system pool with GPUs", edits{"persia:cluster.systemPool.machineType": "g2-standard-8"},
			"persia:cluster.systemPool.machineType", []string{"g2-standard-8", "e2-standard-4"}},
		{"system pool that takes no pd-balanced", edits{"persia:cluster.systemPool.machineType": "c4-standard-4"},
			"persia:cluster.systemPool.machineType", []string{"c4-standard-4", "pd-balanced", "e2-standard-4"}},
		{"system pool of an unknown machine", edits{"persia:cluster.systemPool.machineType": "e2-standrad-4"},
			"persia:cluster.systemPool.machineType", []string{"did you mean", "e2-standard-4"}},

		// Network.
		{"range that does not parse", edits{"persia:cluster.network.nodes": "10.0.0.0"},
			"persia:cluster.network.nodes", []string{`"10.0.0.0"`, "CIDR", "10.0.0.0/20"}},
		{"range of IPv6", edits{"persia:cluster.network.pods": "fd00::/20"},
			"persia:cluster.network.pods", []string{"fd00::/20", "IPv4"}},
		{"range with host bits", edits{"persia:cluster.network.nodes": "10.0.0.1/20"},
			"persia:cluster.network.nodes", []string{"10.0.0.1/20", "write 10.0.0.0/20"}},
		{"control plane not a /28", edits{"persia:cluster.network.controlPlane": "172.16.0.0/27"},
			"persia:cluster.network.controlPlane", []string{"172.16.0.0/27", "write 172.16.0.0/28"}},
		{"pods too small for GKE", edits{"persia:cluster.network.pods": "10.16.0.0/22"},
			"persia:cluster.network.pods", []string{"10.16.0.0/22", "from a /9 to a /21", "write 10.16.0.0/21"}},
		{"ranges overlap", edits{"persia:cluster.network.services": "10.65.0.0/20"},
			"persia:cluster.network.services", []string{"10.65.0.0/20", "overlaps pods", "10.64.0.0/14", "apart"}},
		{"pods too small for the nodes", edits{"persia:cluster.network.pods": "10.16.0.0/21"},
			"persia:cluster.network.pods", []string{"has 2048 addresses", "up to 9 nodes take 2304", "write a /20", "maxPodsPerNode"}},
		{"nodes range too small", edits{"persia:cluster.network.nodes": "10.0.0.0/29"},
			"persia:cluster.network.nodes", []string{"holds 4 nodes", "up to 9", "write a /28"}},
		{"autoscaling counts at its maximum", edits{"persia:nodePools[1].autoscaling.maxNodes": 5000, "persia:cluster.network.pods": "10.64.0.0/14"},
			"persia:cluster.network.pods", []string{"has 262144 addresses", "up to 5005 nodes", "write a /11"}},
		{"open to the world", edits{"persia:cluster.authorizedNetworks[0].cidr": "0.0.0.0/0"},
			"persia:cluster.authorizedNetworks[0].cidr", []string{"0.0.0.0/0", "to the world", "operators"}},
		{"authorized network without name", edits{"persia:cluster.authorizedNetworks[0].name": nil},
			"persia:cluster.authorizedNetworks[0].name", []string{"Required", "like office"}},
		{"authorized network twice", edits{"persia:cluster.authorizedNetworks[1]": edits{"name": "b", "cidr": "203.0.113.0/24"}},
			"persia:cluster.authorizedNetworks[1].cidr", []string{"203.0.113.0/24", "authorizedNetworks[0]", "once"}},

		// Node pools.
		{"pool name too long", edits{"persia:nodePools[2].name": strings.Repeat("p", 41), "persia:jobs[0].embeddingParameterServer.nodePool": strings.Repeat("p", 41)},
			"persia:nodePools[2].name", []string{"41 characters", "at most 40"}},
		{"pool name twice", edits{"persia:nodePools[1].name": "ps", "persia:jobs[0].dataloader.nodePool": "ps", "persia:jobs[0].embeddingWorker.nodePool": "ps"},
			"persia:nodePools[2].name", []string{`"ps"`, "nodePools[1]"}},
		{"pool called system", edits{"persia:nodePools[3]": edits{"name": "system", "machineType": "e2-standard-4", "nodes": 1}},
			"persia:nodePools[3].name", []string{`"system"`, "choose another"}},
		{"machine type unknown", edits{"persia:nodePools[0].machineType": "a2-highgpu-6g"},
			"persia:nodePools[0].machineType", []string{"a2-highgpu-6g", "a2-highgpu-4g", "a2-highgpu-8g"}},
		{"machine type like none", edits{"persia:nodePools[1].machineType": "custom-8-1048576-extended"},
			"persia:nodePools[1].machineType", []string{"custom-8", "predefined"}},
		{"zone of a pool in another region", edits{"persia:nodePools[2].zones": []any{"europe-west4-a"}},
			"persia:nodePools[2].zones[0]", []string{"europe-west4-a", "region us-central1"}},
		{"nodes and autoscaling", edits{"persia:nodePools[1].nodes": 4},
			"persia:nodePools[1].autoscaling", []string{"nodes is 4 already", "either"}},
		{"neither nodes nor autoscaling", edits{"persia:nodePools[1].autoscaling": nil},
			"persia:nodePools[1].nodes", []string{"Required", "or autoscaling"}},
		{"nodes negative", edits{"persia:nodePools[2].nodes": -1},
			"persia:nodePools[2].nodes", []string{"-1", "at least 1"}},
		{"nodes zero", edits{"persia:nodePools[2].nodes": 0},
			"persia:nodePools[2].nodes", []string{"0", "remove the pool"}},
		{"more nodes than GKE takes", edits{"persia:nodePools[1].autoscaling.maxNodes": 15001},
			"persia:nodePools[1].autoscaling.maxNodes", []string{"15001", "at most 15000"}},
		{"nodes uneven", edits{"persia:nodePools[0].zones": []any{"us-central1-a", "us-central1-b", "us-central1-c"}, "persia:nodePools[0].nodes": 8},
			"persia:nodePools[0].nodes", []string{"8", "3 zones", "write 6 or 9"}},
		{"fewer nodes than zones", edits{"persia:nodePools[0].zones": []any{"us-central1-a", "us-central1-b", "us-central1-c"}},
			"persia:nodePools[0].nodes", []string{"2", "3 zones", "write 3, or fewer zones"}},
		{"autoscaling from below zero", edits{"persia:nodePools[1].autoscaling.minNodes": -1},
			"persia:nodePools[1].autoscaling.minNodes", []string{"-1", "at least 0"}},
		{"autoscaling upside down", edits{"persia:nodePools[1].autoscaling.minNodes": 5},
			"persia:nodePools[1].autoscaling.maxNodes", []string{"4", "minNodes, which is 5"}},
		{"autoscaling to nothing", edits{"persia:nodePools[1].autoscaling.maxNodes": 0},
			"persia:nodePools[1].autoscaling.maxNodes", []string{"0", "remove the pool"}},
		{"GPU of another type", edits{"persia:nodePools[0].gpu.type": "nvidia-l4"},
			"persia:nodePools[0].gpu.type", []string{"nvidia-l4", "comes with nvidia-tesla-a100"}},
		{"GPU count of another type", edits{"persia:nodePools[0].gpu.count": 4},
			"persia:nodePools[0].gpu.count", []string{"4", "comes with 8"}},
		{"GPU on a machine that takes none", edits{"persia:nodePools[1].gpu": edits{"type": "nvidia-tesla-t4", "count": 1}},
			"persia:nodePools[1].gpu", []string{"n2-highmem-32 takes no GPUs", "n1"}},
		{"GPU that N1 does not take", edits{"persia:nodePools[1].machineType": "n1-highmem-32", "persia:nodePools[1].gpu": edits{"type": "nvidia-l4", "count": 1}},
			"persia:nodePools[1].gpu.type", []string{"nvidia-l4", "nvidia-tesla-t4 or nvidia-tesla-v100"}},
		{"GPU count that N1 does not take", edits{"persia:nodePools[1].machineType": "n1-highmem-32", "persia:nodePools[1].gpu": edits{"type": "nvidia-tesla-v100", "count": 2}},
			"persia:nodePools[1].gpu.count", []string{"2", "takes 4 or 8"}},
		{"GPU without a type", edits{"persia:nodePools[1].machineType": "n1-highmem-32", "persia:nodePools[1].gpu": edits{"count": 2}},
			"persia:nodePools[1].gpu.type", []string{"Required", "nvidia-tesla-t4"}},
		{"image type unknown", edits{"persia:nodePools[2].imageType": "COS"},
			"persia:nodePools[2].imageType", []string{`"COS"`, "COS_CONTAINERD or UBUNTU_CONTAINERD"}},
		{"disk type unknown", edits{"persia:nodePools[2].disk.type": "ssd"},
			"persia:nodePools[2].disk.type", []string{`"ssd"`, "pd-ssd"}},
		{"disk type that the machine does not take", edits{"persia:nodePools[1].disk.type": "hyperdisk-balanced"},
			"persia:nodePools[1].disk.type", []string{"not for n2-highmem-32", "pd-balanced"}},
		{"disk too small", edits{"persia:nodePools[1].disk.sizeGb": 5},
			"persia:nodePools[1].disk.sizeGb", []string{"5", "from 10 to 65536"}},
		{"label key invalid", edits{"persia:nodePools[1].labels": edits{"a b": "c"}},
			"persia:nodePools[1].labels[a b]", []string{`"a b"`, "alphanumeric"}},
		{"label value invalid", edits{"persia:nodePools[1].labels.team": "a b"},
			"persia:nodePools[1].labels[team]", []string{`"a b"`, "a valid label"}},
		{"label of GKE", edits{"persia:nodePools[1].labels": edits{"cloud.google.com/team": "a"}},
			"persia:nodePools[1].labels[cloud.google.com/team]", []string{"google.com", "prefix of your own"}},
		{"taint without a key", edits{"persia:nodePools[1].taints[0].key": ""},
			"persia:nodePools[1].taints[0].key", []string{"Required"}},
		{"taint effect unknown", edits{"persia:nodePools[1].taints[0].effect": "NO_SCHEDULE"},
			"persia:nodePools[1].taints[0].effect", []string{"NO_SCHEDULE", "NoSchedule, PreferNoSchedule or NoExecute"}},
		{"taint value invalid", edits{"persia:nodePools[1].taints[0].value": "a b"},
			"persia:nodePools[1].taints[0].value", []string{`"a b"`, "a valid label"}},
		{"taint twice", edits{"persia:nodePools[1].taints[1]": edits{"key": "dedicated", "value": "x", "effect": "NoSchedule"}},
			"persia:nodePools[1].taints[1]", []string{"dedicated:NoSchedule", "taints[0]"}},
		{"taint of GKE", edits{"persia:nodePools[0].taints": []any{edits{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}}},
			"persia:nodePools[0].taints[0].key", []string{"nvidia.com/gpu", "remove the taint"}},

		// NVIDIA driver.
		{"installer unknown", edits{"persia:nvidiaDriver.installer": "ubuntu"},
			"persia:nvidiaDriver.installer", []string{`"ubuntu"`, "ubuntu-daemonset"}},
		{"managed with a number", edits{"persia:nvidiaDriver": edits{"installer": "managed", "version": "550.90.12"}},
			"persia:nvidiaDriver.version", []string{"550.90.12", "DEFAULT or LATEST"}},
		{"Ubuntu with an unknown version", edits{"persia:nvidiaDriver.version": "550.90.07"},
			"persia:nvidiaDriver.version", []string{"550.90.07", "550.90.12"}},
		{"COS with a version", edits{"persia:nvidiaDriver": edits{"installer": "cos-daemonset", "version": "550.90.12"}},
			"persia:nvidiaDriver.version", []string{"image decides", `remove "550.90.12"`}},
		{"Ubuntu installer on COS", edits{"persia:nodePools[0].imageType": "COS_CONTAINERD"},
			"persia:nodePools[0].imageType", []string{"COS_CONTAINERD", "ubuntu-daemonset", "write UBUNTU_CONTAINERD"}},
		{"COS installer on Ubuntu", edits{"persia:nvidiaDriver.installer": "cos-daemonset", "persia:nodePools[0].imageType": "UBUNTU_CONTAINERD"},
			"persia:nodePools[0].imageType", []string{"UBUNTU_CONTAINERD", "cos-daemonset", "write COS_CONTAINERD"}},
		{"LATEST on Ubuntu", edits{"persia:nvidiaDriver": edits{"installer": "managed", "version": "LATEST"}, "persia:nodePools[0].imageType": "UBUNTU_CONTAINERD"},
			"persia:nodePools[0].imageType", []string{"LATEST", "write COS_CONTAINERD"}},

		// Volumes.
		{"volume name invalid", edits{"persia:storage[0].name": "Checkpoints", "persia:storage[0].claim": "claim", "persia:jobs[0].mounts[0].volume": "Checkpoints"},
			"persia:storage[0].name", []string{"Checkpoints", "lower case"}},
		{"volume twice", edits{"persia:storage[1]": edits{"name": "checkpoints", "claim": "b", "size": "1Gi", "gcsFuse": edits{"bucket": "other"}}},
			"persia:storage[1].name", []string{"checkpoints", "persia:storage[0]"}},
		{"claim twice", edits{"persia:storage[1]": edits{"name": "b", "claim": "checkpoints-claim", "size": "1Gi", "gcsFuse": edits{"bucket": "other"}}},
			"persia:storage[1].claim", []string{"checkpoints-claim", "persia:storage[0]"}},
		{"bucket twice", edits{"persia:storage[1]": edits{"name": "b", "size": "1Gi", "gcsFuse": edits{"bucket": "persia-checkpoints"}}},
			"persia:storage[1]", []string{"persia-checkpoints", "persia:storage[0]"}},
		{"directory twice", edits{
			"persia:storage[1]": edits{"name": "b", "size": "1Gi", "hostPath": edits{"path": "/data"}},
			"persia:storage[2]": edits{"name": "c", "size": "1Gi", "hostPath": edits{"path": "/data"}}},
			"persia:storage[2]", []string{"/data", "persia:storage[1]"}},
		{"volume without source", edits{"persia:storage[0].gcsFuse": nil},
			"persia:storage[0].gcsFuse", []string{"Required", "hostPath"}},
		{"volume with two sources", edits{"persia:storage[1]": edits{"name": "b", "size": "1Gi", "hostPath": edits{"path": "/data"}, "gcsFuse": edits{"bucket": "other"}}},
			"persia:storage[1].gcsFuse", []string{"exactly one"}},
		{"volume without size", edits{"persia:storage[0].size": nil},
			"persia:storage[0].size", []string{"Required", "10Gi"}},
		{"volume size no quantity", edits{"persia:storage[0].size": "large"},
			"persia:storage[0].size", []string{"large", "a quantity"}},
		{"volume size zero", edits{"persia:storage[0].size": "0Gi"},
			"persia:storage[0].size", []string{"0Gi", "more than 0"}},
		{"access mode unknown", edits{"persia:storage[0].accessModes": []any{"RWX"}, "persia:jobs[0].mounts": nil},
			"persia:storage[0].accessModes[0]", []string{"RWX", "ReadWriteMany"}},
		{"access mode twice", edits{"persia:storage[0].accessModes": []any{"ReadWriteMany", "ReadWriteMany"}},
			"persia:storage[0].accessModes[1]", []string{"ReadWriteMany", "once"}},
		{"directory relative", edits{"persia:storage[1]": edits{"name": "b", "size": "1Gi", "hostPath": edits{"path": "data"}}},
			"persia:storage[1].hostPath.path", []string{`"data"`, "write /data"}},
		{"directory with dots", edits{"persia:storage[1]": edits{"name": "b", "size": "1Gi", "hostPath": edits{"path": "/data/../etc"}}},
			"persia:storage[1].hostPath.path", []string{"/data/../etc", "write /etc"}},
		{"root as a directory", edits{"persia:storage[1]": edits{"name": "b", "size": "1Gi", "hostPath": edits{"path": "/"}}},
			"persia:storage[1].hostPath.path", []string{"below the root"}},
		{"bucket as a URL", edits{"persia:storage[0].gcsFuse.bucket": "gs://persia-checkpoints/"},
			"persia:storage[0].gcsFuse.bucket", []string{"gs://", "write persia-checkpoints"}},
		{"bucket with a capital", edits{"persia:storage[0].gcsFuse.bucket": "Persia"},
			"persia:storage[0].gcsFuse.bucket", []string{"Persia", "3 to 63 lower case"}},
		{"hostPath under several nodes", edits{"persia:storage[0].gcsFuse": nil, "persia:storage[0].hostPath": edits{"path": "/data"}},
			"persia:storage[0].hostPath", []string{"/data", "up to 7 nodes", "loaders, ps, trainers", "use gcsFuse"}},
		{"ReadWriteOnce under several nodes", edits{"persia:storage[0].accessModes": []any{"ReadWriteOnce"}},
			"persia:storage[0].accessModes", []string{"ReadWriteOnce", "up to 7 nodes", "write [ReadWriteMany]"}},

		// NATS.
		{"NATS name too long", edits{"persia:nats.name": strings.Repeat("n", 51)},
			"persia:nats.name", []string{"51 characters", "at most 50"}},
		{"NATS name starting with a digit", edits{"persia:nats.name": "1nats"},
			"persia:nats.name", []string{"1nats", "start with an alphabetic"}},
		{"NATS of fewer servers than one", edits{"persia:nats.size": -1},
			"persia:nats.size", []string{"-1", "at least 1"}},
		{"NATS version with a v", edits{"persia:nats.version": "v2.10.22"},
			"persia:nats.version", []string{"v2.10.22", "MAJOR.MINOR.PATCH"}},
		{"NATS version too old", edits{"persia:nats.version": "2.1.9"},
			"persia:nats.version", []string{"2.1.9", "2.2.0 or later"}},
		{"NATS payload too large", edits{"persia:nats.maxPayload": 67108865},
			"persia:nats.maxPayload", []string{"67108865", "1 to 67108864", "52428800"}},
		{"NATS on a pool that is not there", edits{"persia:nats.nodePool": "nats"},
			"persia:nats.nodePool", []string{`"nats"`, "trainers, loaders, ps or system"}},
		{"NATS without memory", edits{"persia:nats.resources.limits.memory": nil},
			"persia:nats.resources.limits[memory]", []string{"Required", "a NATS server"}},
		{"NATS too large for the system pool", edits{"persia:nats.resources.limits.memory": "14Gi"},
			"persia:nats.resources.limits[memory]", []string{"14Gi", `pool "system"`, "of e2-standard-4", "leave 11.9Gi", "n1-highmem-4"}},
		{"NATS with GPUs", edits{"persia:nats.nodePool": "trainers", "persia:nats.resources.limits": edits{"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 1}},
			"persia:nats.resources.limits[nvidia.com/gpu]", []string{`"1"`, "remove them"}},

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
			"persia:jobs[0].embeddingWorker.resources.limits[memory]", []string{"write how much of it embeddingWorker needs"}},
		{"role without a pool", edits{"persia:jobs[0].dataloader.nodePool": nil},
			"persia:jobs[0].dataloader.nodePool", []string{"Required", "trainers, loaders or ps"}},
		{"role on a pool that is not there", edits{"persia:jobs[0].dataloader.nodePool": "loader"},
			"persia:jobs[0].dataloader.nodePool", []string{`"loader"`, "trainers, loaders or ps"}},
		{"role on the system pool", edits{"persia:jobs[0].dataloader.nodePool": "system"},
			"persia:jobs[0].dataloader.nodePool", []string{`"system"`, "trainers, loaders or ps"}},
		{"role in a stack without pools", edits{"persia:nodePools": []any{}},
			"persia:jobs[0].dataloader.nodePool", []string{"one of the stack's node pools", "system"}},
		{"image with a space", edits{"persia:jobs[0].dataloader.image": "persia :latest"},
			"persia:jobs[0].dataloader.image", []string{"persia :latest", "without spaces"}},
		{"role without CPU", edits{"persia:jobs[0].dataloader.resources.limits.cpu": nil},
			"persia:jobs[0].dataloader.resources.limits[cpu]", []string{"Required", "dataloader"}},
		{"quantity negative", edits{"persia:jobs[0].dataloader.resources.limits.cpu": -1},
			"persia:jobs[0].dataloader.resources.limits[cpu]", []string{`"-1"`, "more than 0"}},
		{"memory without a unit", edits{"persia:jobs[0].dataloader.resources.limits.memory": 12},
			"persia:jobs[0].dataloader.resources.limits[memory]", []string{`"12"`, "write a unit"}},
		{"resource unknown", edits{"persia:jobs[0].dataloader.resources.limits.gpu": 1},
			"persia:jobs[0].dataloader.resources.limits[gpu]", []string{`"gpu"`, "nvidia.com/gpu"}},
		{"GPU resource misspelt", edits{"persia:jobs[0].nnWorker.resources.limits": edits{"cpu": 1, "memory": "1Gi", "nvidia.com/gpus": 1}},
			"persia:jobs[0].nnWorker.resources.limits[nvidia.com/gpus]", []string{"did you mean nvidia.com/gpu?"}},
		{"request above the limit", edits{"persia:jobs[0].dataloader.resources.requests": edits{"cpu": 2}},
			"persia:jobs[0].dataloader.resources.requests[cpu]", []string{`"2"`, "at most the limit, 1"}},
		{"GPUs requested without limit", edits{"persia:jobs[0].nnWorker.resources": edits{"limits": edits{"cpu": 1, "memory": "1Gi"}, "requests": edits{"nvidia.com/gpu": 8}}},
			"persia:jobs[0].nnWorker.resources.requests[nvidia.com/gpu]", []string{`"8"`, "equal the limit", "limits only"}},
		{"resource claims", edits{"persia:jobs[0].nnWorker.resources.claims": []any{edits{"name": "gpu"}}},
			"persia:jobs[0].nnWorker.resources.claims", []string{"write limits and requests"}},
		{"half a GPU", edits{"persia:jobs[0].nnWorker.resources.limits": edits{"cpu": 80, "memory": "600Gi", "nvidia.com/gpu": "500m"}},
			"persia:jobs[0].nnWorker.resources.limits[nvidia.com/gpu]", []string{"500m", "whole number"}},
		{"GPUs on a pool without", edits{"persia:jobs[0].embeddingParameterServer.resources.limits": edits{"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 1}},
			"persia:jobs[0].embeddingParameterServer.resources.limits[nvidia.com/gpu]", []string{`embeddingParameterServer asks for 1 nvidia.com/gpu, pool "ps" has none`, "GPU pool"}},
		{"more GPUs than a node has", edits{"persia:jobs[0].nnWorker.resources.limits": edits{"cpu": 80, "memory": "600Gi", "nvidia.com/gpu": 16}},
			"persia:jobs[0].nnWorker.resources.limits[nvidia.com/gpu]", []string{"16", `pool "trainers" has 8`, "at most that"}},
		{"more CPU than a node leaves", edits{"persia:jobs[0].nnWorker.resources.limits": edits{"cpu": 96, "memory": "600Gi"}},
			"persia:jobs[0].nnWorker.resources.limits[cpu]", []string{`"96"`, `pool "trainers"`, "of a2-highgpu-8g", "leave 95.04 vCPU", "choose a machine type that holds it"}},
		{"more memory than a node leaves", edits{"persia:nodePools[0]": edits{"name": "trainers", "machineType": "n1-highmem-96", "nodes": 2, "gpu": edits{"type": "nvidia-tesla-v100", "count": 8}}},
			"persia:jobs[0].nnWorker.resources.limits[memory]", []string{"600Gi", `pool "trainers"`, "of n1-highmem-96", "leave 593.7Gi", "a2-highgpu-8g"}},
		{"requests count before limits", edits{"persia:jobs[0].dataloader.resources": edits{"limits": edits{"cpu": 64, "memory": "12Gi"}, "requests": edits{"cpu": 40}}},
			"persia:jobs[0].dataloader.resources.requests[cpu]", []string{`"40"`, "31.35 vCPU"}},
		{"more processes than GPUs", edits{"persia:jobs[0].nnWorker.nprocPerNode": 9},
			"persia:jobs[0].nnWorker.nprocPerNode", []string{"9", "at most the 8 GPUs"}},
		{"processes negative", edits{"persia:jobs[0].nnWorker.nprocPerNode": -1},
			"persia:jobs[0].nnWorker.nprocPerNode", []string{"-1", "at least 1"}},
	})
}

// refusal is a mistake, and what it is answered with.
type refusal struct {
	name  string
	edits edits
	path  string
	says  []string
}

func testRefused(t *testing.T, cases []refusal) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(stackFile(t, c.edits), nil)
			require.Error(t, err)
			found := lineOf(t, err, c.path)
			for _, part := range c.says {
				assert.Contains(t, found, part)
			}
			if !slices.Contains(leadsToMore, c.name) {
				assert.Equal(t, 1, strings.Count(err.Error(), "\n"), "one mistake, one problem: %s", err)
			}
		})
	}
}

func TestLoadAccepts(t *testing.T) {
	onOneNode := edits{
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
		"persia:jobs[0].nnWorker.env":                         []any{edits{"name": "LOG_LEVEL", "value": "debug"}},
		"persia:jobs[0].dataloader.env":                       []any{edits{"name": "TOKEN", "valueFrom": edits{"secretKeyRef": edits{"name": "token", "key": "value"}}}},
		"persia:jobs[0].embeddingWorker.image":                "persiaml/persia-cpu-runtime:latest",
		"persia:jobs[0].embeddingWorker.resources.limits.cpu": "1500m",
	}
	for _, c := range []struct {
		name  string
		edits edits
	}{
		{"the base", nil},
		{"all on one node over hostPath", onOneNode},
		{"no jobs", edits{"persia:jobs": []any{}}},
		{"nothing but NATS", edits{"persia:jobs": []any{}, "persia:nodePools": []any{}, "persia:storage": []any{}}},
		{"managed driver, latest", edits{"persia:nvidiaDriver": edits{"installer": "managed", "version": "LATEST"}}},
		{"COS installer", edits{"persia:nvidiaDriver.installer": "cos-daemonset"}},
		{"Ubuntu installer with a version", edits{"persia:nvidiaDriver.version": "550.90.12"}},
		{"attached GPUs", edits{"persia:nodePools[0]": edits{"name": "trainers", "machineType": "n1-standard-96", "nodes": 2,
			"gpu": edits{"type": "nvidia-tesla-v100", "count": 8}}, "persia:jobs[0].nnWorker.resources.limits.memory": "300Gi"}},
		{"three zones", edits{"persia:cluster.zones": []any{"us-central1-a", "us-central1-b", "us-central1-c"},
			"persia:nodePools[0].nodes": 3, "persia:nodePools[2].zones": []any{"us-central1-a"}}},
		{"NATS on a pool of its own", edits{"persia:nats.nodePool": "loaders"}},
		{"longest job name", edits{"persia:jobs[0].name": strings.Repeat("j", 35)}},
		{"null is as if not written", edits{"persia:nodePools[2].gpu": json.RawMessage("null")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(stackFile(t, c.edits), nil)
			assert.NoError(t, err)
		})
	}
}

// TestAllProblemsAtOnce holds that problems of decoding and of every part come
// together, sorted, and that one mistake is one problem.
func TestAllProblemsAtOnce(t *testing.T) {
	_, err := Load(stackFile(t, edits{
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
	}), nil)
	require.Error(t, err)
	assert.Equal(t, `stack configuration: 10 problems
persia:cluster.region: Invalid value: "us-central1-a": is a zone; write the region, us-central1, and the zone in zones
persia:jobs[0].embeddingParameterServer.replicas: Invalid value: 0: must be at least 1; leave the field out for its default
persia:jobs[0].logLevel: Invalid value: "loud": must be trace, debug, info, warn or error
persia:nats.size: Invalid value: "three": must be an integer, without quotes
persia:nodePools[1].name: Invalid value: 7: must be a string; put it in quotes
persia:nodePools[2].machinetype: unknown field; did you mean machineType?
persia:nodePools[2].nodes: Invalid value: "one": must be an integer, without quotes
persia:nvidiaDriver.installer: Invalid value: "apt": must be managed, ubuntu-daemonset or cos-daemonset
persia:project: Required value: write the id of the Google Cloud project, like my-project-123
persia:storage[0].size: Invalid value: "0": must be more than 0, like 10Gi`, err.Error())
}

func TestEveryKeyMissing(t *testing.T) {
	_, err := Load(func(string) (string, bool) { return "", false }, nil)
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	required := append(RequiredKeys(), projectKey)
	assert.Len(t, lines, 1+len(required))
	for _, key := range required {
		assert.Contains(t, lineOf(t, err, key), "Required value: write")
	}
}

func TestOneProblem(t *testing.T) {
	_, err := Load(stackFile(t, edits{"persia:nats.size": -1}), nil)
	require.Error(t, err)
	assert.Equal(t, "stack configuration: 1 problem\npersia:nats.size: Invalid value: -1: must be at least 1; write the number of servers", err.Error())
}

func TestElementsAreSortedByIndex(t *testing.T) {
	var volumes []any
	for i := range 11 {
		volumes = append(volumes, edits{"name": fmt.Sprintf("v%d", i), "size": "0", "gcsFuse": edits{"bucket": fmt.Sprintf("bucket-%d", i)}})
	}
	_, err := Load(stackFile(t, edits{"persia:storage": volumes, "persia:jobs[0].mounts": nil}), nil)
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 12)
	assert.Contains(t, lines[3], "persia:storage[2]")
	assert.Contains(t, lines[11], "persia:storage[10]")
}

func TestDefaults(t *testing.T) {
	s, err := Load(stackFile(t, nil), nil)
	require.NoError(t, err)

	assert.Equal(t, "persia-project", s.Project)
	assert.Equal(t, "REGULAR", s.Cluster.ReleaseChannel)
	assert.True(t, s.Cluster.DeletionProtection)
	assert.Equal(t, cluster.Network{Nodes: "10.0.0.0/20", Pods: "10.64.0.0/14", Services: "10.1.0.0/20", ControlPlane: "172.16.0.0/28"}, s.Cluster.Network)
	assert.Equal(t, cluster.SystemPool{MachineType: "e2-standard-4", Nodes: 2}, s.Cluster.SystemPool)

	trainers, loaders := s.NodePools[0], s.NodePools[1]
	assert.Equal(t, []string{"us-central1-a"}, trainers.Zones)
	assert.Equal(t, "UBUNTU_CONTAINERD", trainers.ImageType, "what the driver's installer needs")
	assert.Equal(t, "COS_CONTAINERD", loaders.ImageType)
	assert.Equal(t, nodepool.Disk{Type: "pd-balanced", SizeGB: 100}, trainers.Disk)
	assert.Empty(t, s.NVIDIADriver.Version, "the image's own")

	assert.Equal(t, "checkpoints-claim", s.Storage[0].Claim)
	assert.Equal(t, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, s.Storage[0].AccessModes)

	assert.Equal(t, "persia-nats-service", s.NATS.Name)
	assert.Equal(t, "2.10.22", s.NATS.Version)
	assert.Equal(t, 52428800, s.NATS.MaxPayload)
	assert.Equal(t, nodepool.SystemName, s.NATS.NodePool)

	job := s.Jobs[0]
	assert.True(t, job.EnableMetrics)
	assert.Equal(t, "info", job.LogLevel)
	assert.Equal(t, corev1.PullAlways, job.ImagePullPolicy)
	assert.Equal(t, 8, job.NNWorker.NprocPerNode)
	assert.Empty(t, job.NNWorker.Image, "the role's own")
	assert.Nil(t, job.NNWorker.Resources.Requests, "left to Kubernetes")
	memory := job.NNWorker.Resources.Limits[corev1.ResourceMemory]
	assert.Equal(t, "600Gi", memory.String())
}

func TestDefaultsThatDepend(t *testing.T) {
	s, err := Load(stackFile(t, edits{
		"persia:cluster.zones":               []any{"us-central1-a", "us-central1-b", "us-central1-c"},
		"persia:cluster.deletionProtection":  false,
		"persia:nodePools[0].nodes":          3,
		"persia:nodePools[1].machineType":    "c4-standard-32",
		"persia:nodePools[2].nodes":          3,
		"persia:nvidiaDriver.installer":      "managed",
		"persia:jobs[0].mounts":              nil,
		"persia:jobs[0].enableMetrics":       false,
		"persia:storage[0]":                  edits{"name": "local", "size": "1Gi", "hostPath": edits{"path": "/data"}},
		"persia:jobs[0].nnWorker.resources":  edits{"limits": edits{"cpu": 1, "memory": "1Gi"}},
		"persia:nodePools[1].taints":         nil,
		"persia:cluster.authorizedNetworks":  nil,
		"persia:jobs[0].embeddingWorker.env": []any{},
	}), nil)
	require.NoError(t, err)
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

func TestKeys(t *testing.T) {
	read := map[string]bool{}
	get := stackFile(t, nil)
	_, err := Load(func(key string) (string, bool) {
		read[key] = true
		return get(key)
	}, nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, slices.Collect(maps.Keys(read)), Keys())
}

// TestStackFiles holds that the stacks of this repository are valid, and that
// its Pulumi.yaml declares the keys that are read.
func TestStackFiles(t *testing.T) {
	files, err := filepath.Glob("../Pulumi.*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := Load(getter(t, parse(t, read(t, file))), nil)
			assert.NoError(t, err)
		})
	}
	declared := parse(t, read(t, "../Pulumi.yaml"))
	delete(declared, "pulumi:tags") // where `pulumi new` says what a project is made from
	assert.ElementsMatch(t, Keys(), slices.Collect(maps.Keys(declared)))
}

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// FuzzLoad replaces the value of one key of the base.
func FuzzLoad(f *testing.F) {
	for i, key := range Keys() {
		text, ok := stackFile(f, nil)(key)
		require.True(f, ok)
		f.Add(i, text)
		f.Add(i, `{"name": [1e999, null, {"": -1}]}`)
	}
	f.Fuzz(func(t *testing.T, which int, text string) {
		get, keys := stackFile(t, nil), Keys()
		replaced := keys[uint(which)%uint(len(keys))]
		s, err := Load(func(key string) (string, bool) {
			if key == replaced {
				return text, true
			}
			return get(key)
		}, nil)
		if err != nil {
			assert.Nil(t, s)
			assert.NotEmpty(t, strings.Split(err.Error(), "\n")[1:])
		}
	})
}

// lineOf finds the line of an error that is about a path.
func lineOf(t *testing.T, err error, path string) string {
	t.Helper()
	for line := range strings.Lines(err.Error()) {
		if strings.HasPrefix(line, path+": ") {
			return line
		}
	}
	require.Fail(t, "no problem at "+path, err.Error())
	return ""
}

// stackFile is the base after some edits. What the program takes of it, an editor
// must take too.
func stackFile(t testing.TB, changes edits) func(string) (string, bool) {
	t.Helper()
	config := parse(t, base)
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		key, rest := splitKey(path)
		config[key] = edit(t, config[key], rest, changes[path])
		if config[key] == nil {
			delete(config, key)
		}
	}
	get := getter(t, config)
	if _, err := Load(get, nil); err == nil {
		assert.NoError(t, schematest.Read(t, "..").CheckConfig(t, config), "%s", schematest.File)
	}
	return get
}

// parse reads the keys of a stack file.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var file struct {
		Config map[string]any `json:"config"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &file))
	return file.Config
}

// getter hands out a stack file as Pulumi does: a string as it is, anything
// else as JSON.
func getter(t testing.TB, config map[string]any) func(string) (string, bool) {
	return func(key string) (string, bool) {
		value, ok := config[key]
		if s, isString := value.(string); isString {
			return s, true
		}
		text, err := json.Marshal(value)
		require.NoError(t, err)
		return string(text), ok
	}
}

var pathElement = regexp.MustCompile(`[^.\[\]]+`)

// splitKey splits a path into its key and the names and indices after it.
func splitKey(path string) (key string, rest []string) {
	elements := pathElement.FindAllString(path, -1)
	return elements[0], elements[1:]
}

// edit is a value after what is at a path below it was replaced.
func edit(t testing.TB, in any, path []string, value any) any {
	t.Helper()
	if len(path) == 0 {
		return value
	}
	switch in := in.(type) {
	case []any:
		i, err := strconv.Atoi(path[0])
		require.NoError(t, err)
		if i == len(in) {
			in = append(in, nil)
		}
		in[i] = edit(t, in[i], path[1:], value)
		return in
	case map[string]any:
		in[path[0]] = edit(t, in[path[0]], path[1:], value)
		if in[path[0]] == nil {
			delete(in, path[0])
		}
		return in
	case edits:
		return edit(t, map[string]any(in), path, value)
	case nil:
		return map[string]any{path[0]: edit(t, nil, path[1:], value)}
	}
	require.Fail(t, "nothing to edit", "%v in %v", path, in)
	return nil
}
