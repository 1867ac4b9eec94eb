package gcp

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"persia/capacity"
	"persia/gcp"
)

// TestNodeOfSettings checks the labels, taints and capacity of nodes against the settings of their
// pool.
func TestNodeOfSettings(t *testing.T) {
	a100 := func(extra values) values {
		accelerator := accelerators("nvidia-tesla-a100", 8, "DEFAULT")[0].(values)
		for key, value := range extra {
			accelerator[key] = value
		}
		return values{"machineType": "a2-highgpu-8g", "guestAccelerators": []any{accelerator}}
	}
	sharing := func(strategy string, clients int) values {
		return values{"gpuSharingStrategy": strategy, "maxSharedClientsPerGpu": clients}
	}
	queued := corev1.Taint{Key: "cloud.google.com/gke-queued", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	for _, c := range []struct {
		name         string
		config, pool values
		labels       map[string]string
		taint        *corev1.Taint
		gpus, pods   int64
		ephemeral    float64
	}{
		{name: "none", pods: 110, ephemeral: 43.6}, // 43.8 on a node of GKE
		{name: "a larger boot disk", config: values{"diskSizeGb": 1000}, pods: 110, ephemeral: 746},
		{name: "spot", config: values{"spot": true}, pods: 110, ephemeral: 43.6,
			labels: map[string]string{"cloud.google.com/gke-spot": "true"}},
		{name: "queued provisioning", pool: values{"queuedProvisioning": values{"enabled": true}}, pods: 110, ephemeral: 43.6,
			labels: map[string]string{"cloud.google.com/gke-queued": "true"}, taint: &queued},
		{name: "fewer pods", pool: values{"maxPodsPerNode": 32}, pods: 32, ephemeral: 43.6},
		{name: "one local SSD", config: values{"ephemeralStorageLocalSsdConfig": values{"localSsdCount": 1}}, pods: 110, ephemeral: 287.5,
			labels: map[string]string{"cloud.google.com/gke-ephemeral-storage-local-ssd": "true"}},
		{name: "four local SSDs", config: values{"ephemeralStorageLocalSsdConfig": values{"localSsdCount": 4}}, pods: 110, ephemeral: 1250},
		{name: "whole GPUs", config: a100(nil), pods: 110, ephemeral: 43.6, gpus: 8},
		{name: "partitions", config: a100(values{"gpuPartitionSize": "2g.10gb"}), pods: 110, ephemeral: 43.6, gpus: 24,
			labels: map[string]string{"cloud.google.com/gke-gpu-partition-size": "2g.10gb", "cloud.google.com/gke-accelerator-count": "8"}},
		{name: "shared GPUs", config: a100(values{"gpuSharingConfig": sharing("MPS", 4)}), pods: 110, ephemeral: 43.6, gpus: 32,
			labels: map[string]string{
				"cloud.google.com/gke-gpu-sharing-strategy":       "mps",
				"cloud.google.com/gke-max-shared-clients-per-gpu": "4",
			}},
		{name: "shared partitions", config: a100(values{"gpuPartitionSize": "1g.5gb", "gpuSharingConfig": sharing("TIME_SHARING", 2)}),
			pods: 110, ephemeral: 43.6, gpus: 112,
			labels: map[string]string{"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inputs := poolInputs("workers", 1, c.config)
			for path, value := range c.pool {
				inputs[resource.PropertyKey(path)] = resource.NewPropertyValue(value)
			}
			g := newGoogle(t)
			g.create(nodePoolType, inputs)
			node := g.oneNode()

			for key, want := range c.labels {
				assert.Equal(t, want, node.Labels[key], key)
			}
			if c.taint != nil {
				assert.Contains(t, node.Spec.Taints, *c.taint)
			}
			for _, list := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
				gpus := list[gcp.GPUResource]
				assert.Equal(t, c.gpus, gpus.Value())
			}
			assert.Equal(t, c.pods, node.Status.Capacity.Pods().Value())
			assert.Equal(t, c.pods-capacity.NodeAgents.Pods, node.Status.Allocatable.Pods().Value())
			assert.InDelta(t, c.ephemeral, float64(node.Status.Allocatable.StorageEphemeral().Value())/(1<<30), 0.1)
			assert.Greater(t, node.Status.Capacity.StorageEphemeral().Value(), node.Status.Allocatable.StorageEphemeral().Value())
		})
	}
}

func TestPlainNodesHaveNoLabelsOfSettings(t *testing.T) {
	g := newGoogle(t)
	g.create(nodePoolType, poolInputs("workers", 1, values{"spot": false}))
	node := g.oneNode()
	for _, key := range []string{
		"cloud.google.com/gke-spot",
		"cloud.google.com/gke-queued",
		"cloud.google.com/gke-ephemeral-storage-local-ssd",
		"cloud.google.com/gke-gpu-partition-size",
		"cloud.google.com/gke-gpu-sharing-strategy",
	} {
		assert.NotContains(t, node.Labels, key)
	}
}
