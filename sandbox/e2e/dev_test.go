package e2e

import (
	"encoding/json"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/kube"
	"persia/sandbox"
)

// TestDev follows the stack dev, one node with a GPU and PERSIA's adult-income example, from
// the first command to the last.
func TestDev(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSandbox(t, dir, "dev")
	comment := commenter(t, dir)
	t.Run("commands before up", func(t *testing.T) { testCommandsBeforeUp(t, dir) })
	upByCommand(t, dir)
	t.Run("comments on changes", func(t *testing.T) { testCommentsOnChanges(t, comment) })
	t.Run("objects and outputs", func(t *testing.T) { testDevObjects(t, s) })
	t.Run("status", func(t *testing.T) { testStatus(t, newCluster(t, s), dir) })
	t.Run("previews", func(t *testing.T) { testPreviews(t, dir) })
	t.Run("ports", func(t *testing.T) { assertListensOnLoopbackOnly(t, dir) })
	t.Run("drift", func(t *testing.T) { testDrift(t, s) })
	t.Run("protected from deletion", func(t *testing.T) { testProtected(t, s, dir) })
	t.Run("destroy", func(t *testing.T) {
		c := newCluster(t, s)
		require.NoError(t, s.Destroy(t.Context()))
		c.assertEmpty()
	})
	t.Run("down by the command", func(t *testing.T) { testDownByCommand(t, dir) })
}

// testDevObjects looks at the stack after up, and gets its outputs from an up that changes
// nothing.
func testDevObjects(t *testing.T, s *sandbox.Sandbox) {
	c := newCluster(t, s)
	for _, role := range []string{"nn-worker", "dataloader", "embedding-worker", "embedding-ps"} {
		c.assertOn("gpu", 1, c.pods("persia", "app.kubernetes.io/name="+role))
	}
	c.assertOn("system", 1, c.pods("nats-io", "nats_cluster=persia-nats-service"))
	c.assertOn("system", 1, c.pods("nats-io", "app.kubernetes.io/name=nats-operator"))
	c.assertOn("system", 1, c.pods("persia", "app.kubernetes.io/name=metrics-gateway"))
	c.assertOn("system", 1, c.pods("persia", "app.kubernetes.io/name=completion"))
	assert.Len(t, c.pods("persia", ""), 6, "no other pod")
	assert.Len(t, c.nodes(), 3)
	c.assertScraped("system", 1)
	c.assertBound("checkpoints-pvc", "checkpoints-vol")
	assert.Empty(t, c.pods("kube-system", ""), "GKE installs the driver: no DaemonSet")
	c.assertOperatorAllowed()

	result, err := s.Up(t.Context())
	require.NoError(t, err)
	assert.Empty(t, changes(t, result.Summary), "second up")
	assert.Equal(t, "persia-dev", result.Outputs["clusterName"].Value)
	assert.NotEmpty(t, result.Outputs["clusterEndpoint"].Value)
	assert.True(t, result.Outputs["kubeconfig"].Secret)
	assert.Contains(t, result.Outputs["kubeconfig"].Value, "gke-gcloud-auth-plugin")
	assert.Equal(t, "nats://persia-nats-service.nats-io.svc:4222", result.Outputs["natsUrl"].Value)
	assert.Equal(t, []any{map[string]any{"volume": "checkpoints-vol", "claim": "checkpoints-pvc",
		"storage": "directory /var/lib/persia of the node", "onDestroy": "lost with its node"}},
		result.Outputs["checkpointVolumes"].Value)
	assert.Equal(t, map[string]any{"adult-income": map[string]any{
		"adult-income-nn-worker": 1.0, "adult-income-dataloader": 1.0,
		"adult-income-embedding-worker": 1.0, "adult-income-embedding-ps": 1.0,
	}}, result.Outputs["jobs"].Value)
}

// assertScraped checks that the PodMonitoring, which the API server has held
// against Google's own schema, selects count gateways, each on a node of the pool.
func (c cluster) assertScraped(pool string, count int) {
	c.t.Helper()
	text, err := c.CoreV1().RESTClient().Get().
		AbsPath("/apis/monitoring.googleapis.com/v1/namespaces/persia/podmonitorings/metrics-gateways").DoRaw(c.t.Context())
	require.NoError(c.t, err)
	var monitoring kube.PodMonitoring
	require.NoError(c.t, json.Unmarshal(text, &monitoring))
	c.assertOn(pool, count, c.pods("persia", metav1.FormatLabelSelector(&monitoring.Spec.Selector)))
	assert.Equal(c.t, []kube.LabelMapping{{From: "persia_job"}}, monitoring.Spec.TargetLabels.FromPod)
}

// testDrift changes an object behind Pulumi's back: refresh finds it, and up mends it.
func testDrift(t *testing.T, s *sandbox.Sandbox) {
	c := newCluster(t, s)
	c.scale("adult-income-dataloader", 2)

	assert.Equal(t, 1, refreshChanges(t, s)["update"])
	assert.Equal(t, 1, upChanges(t, s)["update"])
	set, err := c.AppsV1().StatefulSets("persia").Get(t.Context(), "adult-income-dataloader", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, int32(1), *set.Spec.Replicas)
}

// testPreviews edits the job: a preview updates the roles concerned in place, and
// replaces the completion, since a job that has failed gets another chance when it is
// changed. Nothing else changes.
func testPreviews(t *testing.T, dir string) {
	for name, edit := range map[string]struct {
		old, new string
		roles    int
	}{
		"image":       {"nprocPerNode: 1\n", "nprocPerNode: 1\n        image: persiaml/persia-cuda-runtime:1\n", 1},
		"variable":    {"{name: ENABLE_CUDA, value: \"1\"}", "{name: ENABLE_CUDA, value: \"0\"}", 1},
		"replicas":    {"dataloader:\n        replicas: 1\n", "dataloader:\n        replicas: 2\n", 2},
		"config path": {"config/global_config.yml", "config/other_config.yml", 4},
	} {
		t.Run(name, func(t *testing.T) {
			preview, err := openSandbox(t, editStack(t, "dev", edit.old, edit.new), dir, "dev").Preview(t.Context())
			require.NoError(t, err)
			delete(preview.ChangeSummary, apitype.OpSame)
			assert.Equal(t, map[apitype.OpType]int{apitype.OpUpdate: edit.roles, apitype.OpReplace: 1}, preview.ChangeSummary)
		})
	}
}
