package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/stacktest"
)

// TestWarningOfNewerGPUs checks the warning about GPUs that the default image does not support.
func TestWarningOfNewerGPUs(t *testing.T) {
	const says = "PyTorch 1.8, which does not support"
	a3 := edits{"persia:nodePools[0].machineType": "a3-highgpu-8g", "persia:nodePools[0].gpu.type": "nvidia-h100-80gb",
		"persia:nvidiaDriver": edits{"installer": "managed"}}
	withImage := edits{"persia:jobs[0].nnWorker.image": "registry.example.com/nn-worker:2"}
	for path, value := range a3 {
		withImage[path] = value
	}
	for name, test := range map[string]struct {
		edits edits
		warns bool
	}{
		"A100":                     {edits{}, false},
		"H100":                     {a3, true},
		"H100 and an image for it": {withImage, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := stacktest.Load(t, test.edits)
			require.NoError(t, err)
			warnings := strings.Join(s.Warnings(), "\n")
			assert.Equal(t, test.warns, strings.Contains(warnings, says), warnings)
			assert.Equal(t, test.warns, strings.Contains(warnings, "persia:jobs[0].nnWorker.image"), warnings)
		})
	}
}

// TestWarningOfDockerHub checks the warning about more nodes behind one NAT than Docker Hub
// serves without an account.
func TestWarningOfDockerHub(t *testing.T) {
	for name, test := range map[string]struct {
		edits edits
		warns bool
	}{
		"few nodes":                   {edits{}, false},
		"many":                        {edits{"persia:nodePools[2].nodes": 60}, true},
		"many at the maximum":         {edits{"persia:nodePools[1].autoscaling.maxNodes": 60}, true},
		"many, with a cache":          {edits{"persia:nodePools[2].nodes": 60, "persia:images": edits{"caches": []any{edits{"registry": "docker.io"}}}}, false},
		"many, with another's cache":  {edits{"persia:nodePools[2].nodes": 60, "persia:images": edits{"caches": []any{edits{"registry": "quay.io", "repository": "us-docker.pkg.dev/p/quay"}}}}, true},
		"many, with public addresses": {edits{"persia:nodePools[2].nodes": 60, "persia:cluster.privateNodes": false}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := stacktest.Load(t, test.edits)
			require.NoError(t, err)
			warnings := strings.Join(s.Warnings(), "\n")
			assert.Equal(t, test.warns, strings.Contains(warnings, "persia:images: up to"), warnings)
		})
	}
}

// TestWarningOfExposure checks the warnings about settings that expose pods to each other.
func TestWarningOfExposure(t *testing.T) {
	for name, test := range map[string]struct {
		edits edits
		path  string
	}{
		"defaults":                     {edits{}, ""},
		"no enforced network policies": {edits{"persia:cluster.dataplaneV2": false}, "persia:cluster.dataplaneV2: "},
		"the node's token":             {edits{"persia:cluster.workloadIdentity": false, "persia:storage": []any{}, "persia:jobs[0].mounts": []any{}}, "persia:cluster.workloadIdentity: "},
		"an operator of the cluster":   {edits{"persia:nats.operatorScope": "cluster"}, "persia:nats.operatorScope: "},
		"an operator of its namespace": {edits{"persia:nats.operatorScope": "namespace"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := stacktest.Load(t, test.edits)
			require.NoError(t, err)
			warnings := strings.Join(s.Warnings(), "\n")
			for _, path := range []string{"persia:cluster.dataplaneV2: ", "persia:cluster.workloadIdentity: ", "persia:nats.operatorScope: "} {
				assert.Equal(t, path == test.path, strings.Contains(warnings, path), warnings)
			}
		})
	}
}
