package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/sandbox"
)

// TestDev: one node with a GPU and PERSIA's adult-income example.
func TestDev(t *testing.T) {
	dir := t.TempDir()
	s := newSandbox(t, dir, "dev")
	result, err := s.Up(t.Context())
	require.NoError(t, err)
	c := newCluster(t, s)

	for _, role := range []string{"nn-worker", "dataloader", "embedding-worker", "embedding-ps"} {
		c.assertOn("gpu", 1, c.pods("persia", "app.kubernetes.io/name="+role))
	}
	c.assertOn("system", 1, c.pods("nats-io", "nats_cluster=persia-nats-service"))
	c.assertOn("system", 1, c.pods("nats-io", "app.kubernetes.io/name=nats-operator"))
	c.assertOn("system", 1, c.pods("persia", "app.kubernetes.io/name=metrics-gateway"))
	c.assertBound("checkpoints-pvc", "checkpoints-vol")
	assert.Empty(t, c.pods("kube-system", ""), "GKE installs the driver: no DaemonSet")
	c.assertOperatorAllowed()

	assert.Equal(t, "persia-dev", result.Outputs["clusterName"].Value)
	assert.NotEmpty(t, result.Outputs["clusterEndpoint"].Value)
	assert.True(t, result.Outputs["kubeconfig"].Secret)
	assert.Contains(t, result.Outputs["kubeconfig"].Value, "gke-gcloud-auth-plugin")
	assert.Equal(t, "nats://persia-nats-service.nats-io.svc:4222", result.Outputs["natsUrl"].Value)
	assert.Equal(t, []any{map[string]any{"volume": "checkpoints-vol", "claim": "checkpoints-pvc",
		"storage": "directory /mnt/data of the node", "onDestroy": "kept"}},
		result.Outputs["checkpointVolumes"].Value)
	assert.Equal(t, map[string]any{"adult-income": map[string]any{
		"adult-income-nn-worker": 1.0, "adult-income-dataloader": 1.0,
		"adult-income-embedding-worker": 1.0, "adult-income-embedding-ps": 1.0,
	}}, result.Outputs["jobs"].Value)

	c.assertNodeLess(t, "dev")
	assertListensOnLoopbackOnly(t, dir)
	assertDrift(t, s, c)

	require.NoError(t, s.Destroy(t.Context()))
	c.assertEmpty()
}

// assertDrift changes an object behind Pulumi's back: refresh finds it, and up
// mends it.
func assertDrift(t *testing.T, s *sandbox.Sandbox, c cluster) {
	t.Helper()
	sets := c.AppsV1().StatefulSets("persia")
	scale, err := sets.GetScale(t.Context(), "adult-income-dataloader", metav1.GetOptions{})
	require.NoError(t, err)
	scale.Spec.Replicas = 2
	_, err = sets.UpdateScale(t.Context(), "adult-income-dataloader", scale, metav1.UpdateOptions{})
	require.NoError(t, err)

	assert.Equal(t, 1, refreshChanges(t, s)["update"])
	assert.Equal(t, 1, upChanges(t, s)["update"])
	set, err := sets.Get(t.Context(), "adult-income-dataloader", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, int32(1), *set.Spec.Replicas)
}
