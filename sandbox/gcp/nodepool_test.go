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

	"persia/gcp"
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

func (g simulated) names() []string { return slices.Sorted(maps.Keys(g.nodes())) }

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
			assert.Len(t, g.states[key(nodePoolType, changed)].outputs.Mappable()["nodeConfig"].(values)["taints"], 1,
				"the provider answers the pool's own taints")
		})
	}
}
