package gcp

import (
	"maps"
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"persia/capacity"
	"persia/gcp"
	"persia/sandbox/gcp/property"
)

// poolInputs returns a node pool as the program describes one.
func poolInputs(name string, count int, config values) resource.PropertyMap {
	node := values{
		"machineType":            "n2-standard-4",
		"imageType":              "COS_CONTAINERD",
		"diskType":               "pd-balanced",
		"diskSizeGb":             100,
		"labels":                 values{},
		"taints":                 []any{},
		"serviceAccount":         "nodes@my-project.iam.gserviceaccount.com",
		"oauthScopes":            []any{"https://www.googleapis.com/auth/cloud-platform"},
		"metadata":               values{"disable-legacy-endpoints": "true"},
		"workloadMetadataConfig": values{"mode": "GKE_METADATA"},
		"shieldedInstanceConfig": values{"enableIntegrityMonitoring": true, "enableSecureBoot": false},
	}
	maps.Copy(node, config)
	return properties(values{
		"project":       "my-project",
		"location":      "us-central1",
		"cluster":       "persia",
		"name":          name,
		"nodeLocations": []any{"us-central1-c"},
		"nodeCount":     count,
		"nodeConfig":    node,
		"management":    values{"autoRepair": true, "autoUpgrade": true},
	})
}

func gpuPool() resource.PropertyMap {
	return poolInputs("training", 2, values{
		"machineType":       "a2-highgpu-8g",
		"imageType":         "UBUNTU_CONTAINERD",
		"labels":            values{"persia.com/part": "nn-worker"},
		"taints":            []any{values{"key": "persia.com/dedicated", "value": "training", "effect": "NO_SCHEDULE"}},
		"guestAccelerators": accelerators("nvidia-tesla-a100", 8, "INSTALLATION_DISABLED"),
	})
}

func accelerators(gpu string, count int, driver string) []any {
	return []any{values{
		"type":                        gpu,
		"count":                       count,
		"gpuDriverInstallationConfig": values{"gpuDriverVersion": driver},
	}}
}

// nodes returns all nodes of the control plane, by name.
func (g simulated) nodes() map[string]corev1.Node {
	g.Helper()
	list, err := g.client.CoreV1().Nodes().List(g.Context(), metav1.ListOptions{})
	require.NoError(g, err)
	nodes := map[string]corev1.Node{}
	for _, node := range list.Items {
		nodes[node.Name] = node
	}
	return nodes
}

// oneNode is any of the nodes, which are alike but for their names.
func (g simulated) oneNode() corev1.Node {
	g.Helper()
	for _, node := range g.nodes() {
		return node
	}
	require.Fail(g, "there is no node")
	return corev1.Node{}
}

// nodeVerbs returns the verbs of the requests for nodes.
func (g simulated) nodeVerbs() []string {
	var verbs []string
	for _, action := range g.client.Actions() {
		if action.GetResource().Resource == "nodes" {
			verbs = append(verbs, action.GetVerb())
		}
	}
	return verbs
}

func (g simulated) names() []string { return slices.Sorted(maps.Keys(g.nodes())) }

// zones count the nodes of each.
func (g simulated) zones() map[string]int {
	g.Helper()
	zones := map[string]int{}
	for _, node := range g.nodes() {
		zones[node.Labels[corev1.LabelTopologyZone]]++
	}
	return zones
}

func TestNodeOfEachKindOfPool(t *testing.T) {
	gpuTaint := corev1.Taint{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}
	const absent = ""
	for _, c := range []struct {
		name   string
		config values
		labels map[string]string
		taints []corev1.Taint
		gpus   int64
	}{
		{
			name:   "CPU on Container-Optimized OS",
			config: values{},
			labels: map[string]string{
				"cloud.google.com/gke-nodepool":           "workers",
				"cloud.google.com/gke-os-distribution":    "cos",
				"cloud.google.com/gke-boot-disk":          "pd-balanced",
				"cloud.google.com/gke-container-runtime":  "containerd",
				"cloud.google.com/machine-family":         "n2",
				"cloud.google.com/gke-accelerator":        absent,
				"cloud.google.com/gke-accelerator-count":  absent,
				"cloud.google.com/gke-gpu-driver-version": absent,
				"node.kubernetes.io/instance-type":        "n2-standard-4",
				"kubernetes.io/arch":                      "amd64",
				"kubernetes.io/os":                        "linux",
				"topology.kubernetes.io/region":           "us-central1",
				"topology.kubernetes.io/zone":             "us-central1-c",
				"topology.gke.io/zone":                    "us-central1-c",
			},
		},
		{
			name:   "CPU on Ubuntu",
			config: values{"imageType": "UBUNTU_CONTAINERD"},
			labels: map[string]string{"cloud.google.com/gke-os-distribution": "ubuntu"},
		},
		{
			name: "GPU with GKE's driver",
			config: values{
				"machineType":       "g2-standard-12",
				"guestAccelerators": accelerators("nvidia-l4", 1, "LATEST"),
			},
			labels: map[string]string{
				"cloud.google.com/gke-accelerator":        "nvidia-l4",
				"cloud.google.com/gke-accelerator-count":  "1",
				"cloud.google.com/gke-gpu-driver-version": "latest",
				"cloud.google.com/machine-family":         "g2",
			},
			taints: []corev1.Taint{gpuTaint},
			gpus:   1,
		},
		{
			name: "GPU with the driver disabled",
			config: values{
				"machineType":       "a2-highgpu-8g",
				"imageType":         "UBUNTU_CONTAINERD",
				"guestAccelerators": accelerators("nvidia-tesla-a100", 8, "INSTALLATION_DISABLED"),
			},
			labels: map[string]string{
				"cloud.google.com/gke-accelerator":        "nvidia-tesla-a100",
				"cloud.google.com/gke-accelerator-count":  "8",
				"cloud.google.com/gke-gpu-driver-version": absent,
				"cloud.google.com/gke-os-distribution":    "ubuntu",
			},
			taints: []corev1.Taint{gpuTaint},
			gpus:   8,
		},
		{
			name: "GPU with nothing said of the driver",
			config: values{
				"machineType":       "a2-highgpu-1g",
				"guestAccelerators": []any{values{"type": "nvidia-tesla-a100", "count": 1}},
			},
			labels: map[string]string{"cloud.google.com/gke-gpu-driver-version": "default"},
			taints: []corev1.Taint{gpuTaint},
			gpus:   1,
		},
		{
			name:   "GPU that the machine type brings along",
			config: values{"machineType": "a2-highgpu-1g"},
			labels: map[string]string{
				"cloud.google.com/gke-accelerator":        "nvidia-tesla-a100",
				"cloud.google.com/gke-gpu-driver-version": "default",
			},
			taints: []corev1.Taint{gpuTaint},
			gpus:   1,
		},
		{
			name: "GPUs attached to N1",
			config: values{
				"machineType":       "n1-standard-8",
				"guestAccelerators": accelerators("nvidia-tesla-t4", 2, "DEFAULT"),
			},
			labels: map[string]string{
				"cloud.google.com/gke-accelerator":        "nvidia-tesla-t4",
				"cloud.google.com/gke-accelerator-count":  "2",
				"cloud.google.com/gke-gpu-driver-version": "default",
			},
			taints: []corev1.Taint{gpuTaint},
			gpus:   2,
		},
		{
			name: "labels and taints of its own",
			config: values{
				"labels": values{"persia.com/part": "nats", "cloud.google.com/gke-nodepool": "mine"},
				"taints": []any{
					values{"key": "a", "value": "1", "effect": "NO_SCHEDULE"},
					values{"key": "b", "value": "2", "effect": "PREFER_NO_SCHEDULE"},
					values{"key": "c", "value": "3", "effect": "NO_EXECUTE"},
				},
			},
			labels: map[string]string{"persia.com/part": "nats", "cloud.google.com/gke-nodepool": "workers"},
			taints: []corev1.Taint{
				{Key: "a", Value: "1", Effect: corev1.TaintEffectNoSchedule},
				{Key: "b", Value: "2", Effect: corev1.TaintEffectPreferNoSchedule},
				{Key: "c", Value: "3", Effect: corev1.TaintEffectNoExecute},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGoogle(t)
			g.create(nodePoolType, poolInputs("workers", 1, c.config))
			node := g.oneNode()
			for key, want := range c.labels {
				value, has := node.Labels[key]
				assert.Equal(t, want, value, key)
				assert.Equal(t, want != absent, has, key)
			}
			assert.Equal(t, node.Name, node.Labels[corev1.LabelHostname])
			assert.Equal(t, c.taints, node.Spec.Taints)
			assert.Equal(t, "fake", node.Annotations["kwok.x-k8s.io/node"])

			for _, list := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
				gpus, has := list[gcp.GPUResource]
				assert.Equal(t, c.gpus, gpus.Value())
				assert.Equal(t, c.gpus > 0, has)
			}
		})
	}
}

// TestTaintOfGPUPools: GKE taints a GPU pool only if the cluster has a pool without GPUs when it
// creates the GPU pool. Neither a later pool nor an update of the pool changes that.
func TestTaintOfGPUPools(t *testing.T) {
	const cluster = "projects/my-project/locations/us-central1/clusters/persia"
	tainted := func(g simulated) bool {
		for _, node := range g.nodes() {
			if node.Labels[gcp.LabelNodePool] == "training" {
				return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == gcp.TaintGPU })
			}
		}
		require.Fail(g, "there is no node of the GPU pool")
		return false
	}
	for name, before := range map[string]bool{"after a pool without GPUs": true, "as the first pool": false} {
		t.Run(name, func(t *testing.T) {
			g := newGoogle(t)
			g.create(nodePoolType, poolInputs("cpus", 1, nil))
			if !before {
				require.NoError(t, g.delete(nodePoolType, poolInputs("cpus", 1, nil)))
				require.NoError(t, g.cloud.Delete(nodePoolKind, cluster+"/nodePools/system"))
			}
			inputs := gpuPool()
			created, err := g.Create(g.Context(), plugin.CreateRequest{URN: urn(nodePoolType), Properties: inputs})
			require.NoError(t, err)
			g.states[key(nodePoolType, inputs)] = held{created.ID, inputs, created.Properties}
			assert.Equal(t, before, tainted(g))

			g.create(nodePoolType, poolInputs("more", 1, nil))
			assert.Equal(t, before, tainted(g), "with a later pool")
			changed := change(t, inputs, "nodeConfig.taints", []any{values{"key": "other", "value": "x", "effect": "NO_SCHEDULE"}})
			g.update(nodePoolType, inputs, changed)
			assert.Equal(t, before, tainted(g), "after an update of its own taints")
			assert.Len(t, property.Objects(property.Object(g.states[key(nodePoolType, changed)].outputs, "nodeConfig"), "taints"), 1,
				"the provider answers the pool's own taints")
		})
	}
}

func TestAllocatableIsLessThanCapacity(t *testing.T) {
	g := newGoogle(t)
	g.create(nodePoolType, gpuPool())
	status := g.oneNode().Status
	assert.EqualValues(t, 96_000, status.Capacity.Cpu().MilliValue())
	assert.EqualValues(t, 680<<30, status.Capacity.Memory().Value())
	// GKE leaves 95.69 CPU and 648.8 GiB, and its own pods take some of it.
	assert.EqualValues(t, 95_690-capacity.NodeAgents.MilliCPU, status.Allocatable.Cpu().MilliValue())
	assert.InDelta(t, 648.8, float64(status.Allocatable.Memory().Value()+capacity.NodeAgents.MemoryBytes)/(1<<30), 0.1)
	assert.Less(t, status.Allocatable.StorageEphemeral().Value(), status.Capacity.StorageEphemeral().Value())
}

func TestNodesOverZones(t *testing.T) {
	const a, b, c = "us-central1-a", "us-central1-b", "us-central1-c"
	for _, row := range []struct {
		name   string
		zones  []any
		fixed  any
		scaled any
		want   map[string]int
	}{
		{"a fixed count in one zone", []any{c}, 3, nil, map[string]int{c: 3}},
		{"a fixed count in each of several zones", []any{b, a, c}, 2, nil, map[string]int{a: 2, b: 2, c: 2}},
		{"no nodes", []any{a}, 0, nil, map[string]int{}},
		{"the least of an autoscaled pool", []any{a}, nil, 4, map[string]int{a: 4}},
		{"the least over all zones together", []any{b, a}, nil, 3, map[string]int{a: 2, b: 1}},
		{"an autoscaled pool from zero", []any{a}, nil, 0, map[string]int{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := newGoogle(t)
			inputs := change(t, gpuPool(), "nodeLocations", row.zones)
			inputs = change(t, inputs, "nodeCount", row.fixed)
			if row.scaled != nil {
				inputs = change(t, inputs, "autoscaling", values{"totalMinNodeCount": row.scaled, "totalMaxNodeCount": 9})
			}
			g.create(nodePoolType, inputs)
			assert.Equal(t, row.want, g.zones())
		})
	}
}

func TestMachinesOutsideTheCatalogueCannotBeSimulated(t *testing.T) {
	g := newGoogle(t)
	_, err := g.tryCreate(nodePoolType, change(t, gpuPool(), "nodeConfig.machineType", "z9-standard-4"))
	assert.ErrorContains(t, err, `machine type "z9-standard-4" is not in the catalogue`)
	assert.ErrorContains(t, err, "clusters/persia/nodePools/training")
	assert.Empty(t, g.nodes())
}

func TestNodeNames(t *testing.T) {
	long := "a-name-of-the-forty-characters-gke-takes"
	for _, name := range []string{"w", "training", long} {
		g := newGoogle(t)
		g.create(nodePoolType, poolInputs(name, 1, values{}))
		for node := range g.nodes() {
			assert.Empty(t, validation.IsDNS1123Label(node), node)
		}
	}

	g := newGoogle(t)
	g.create(nodePoolType, poolInputs(long+"-1", 2, values{}))
	g.create(nodePoolType, poolInputs(long+"-2", 2, values{}))
	assert.Len(t, g.nodes(), 4, "shortened names of two pools are different ones")
}
