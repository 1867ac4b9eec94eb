package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	dataloaders = "adult-income-dataloader"
	// perNode is how many dataloaders of 8 GiB a node of 32 GiB holds.
	perNode = 3
)

// TestAutoscaling: the dataloaders have a pool from 0 to 4 nodes for themselves.
func TestAutoscaling(t *testing.T) {
	nightly(t)
	t.Parallel()
	dir := t.TempDir()
	s := newSandboxOf(t, autoscaledStack(t, 4), dir, "dev")
	t.Cleanup(func() {
		if t.Failed() {
			logFiles(t, filepath.Join(dir, "dev", "agent", "agent.log"))
		}
	})
	err := s.Apply(t.Context())
	require.NoError(t, err)
	c := autoscaledCluster{newCluster(t, s)}
	c.assertOn("loaders", 4, c.dataloaders())
	assert.Len(t, c.nodesOf("loaders"), 2, "4 replicas of 3 a node")
	assert.Empty(t, refreshChanges(t, s), "the program does not say how many nodes there are")

	t.Run("more replicas", func(t *testing.T) {
		edited := openSandbox(t, autoscaledStack(t, 7), dir, "dev")
		assert.Equal(t, map[string]int{"update": 2, "replace": 1}, upChanges(t, edited),
			"the dataloaders, and the nn-workers and the completion, which count them")
		c.assertOn("loaders", 7, c.dataloaders())
		assert.Len(t, c.nodesOf("loaders"), 3, "7 replicas of 3 a node")
		assert.Empty(t, upChanges(t, edited))
	})
	t.Run("more than the maximum holds", func(t *testing.T) {
		c.scale(dataloaders, 4*perNode+2)
		// Once the autoscaler has said so, it has done what it does.
		c.await(func() bool {
			pods, refused := c.dataloaders(), c.refused()
			pending := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
			return len(pods) == 4*perNode+2 && len(pending) == 2 && refused[pending[0].Name] && refused[pending[1].Name]
		}, "all replicas on a node but 2, which get none")
		assert.Len(t, c.nodesOf("loaders"), 4)
	})
	t.Run("no replicas", func(t *testing.T) {
		c.scale(dataloaders, 0)
		c.await(func() bool { return len(c.nodesOf("loaders")) == 0 }, "no nodes")
		assert.Len(t, c.nodesOf("gpu"), 1)
		assert.Len(t, c.nodesOf("system"), 2)
	})
	t.Run("destroy", func(t *testing.T) {
		require.NoError(t, s.Destroy(t.Context()))
		c.assertEmpty()
	})
}

// autoscaledStack returns the stack dev with an autoscaled pool for the dataloaders,
// and with a volume that more than one node can mount.
func autoscaledStack(t *testing.T, replicas int) string {
	t.Helper()
	return editStack(t, "dev",
		"  persia:nodePools:\n", `  persia:nodePools:
    - name: loaders
      machineType: n2-standard-8
      autoscaling: {minNodes: 0, maxNodes: 4}
`,
		"hostPath: {path: /var/lib/persia}", "gcsFuse: {bucket: my-project-checkpoints}",
		"      dataloader:\n        replicas: 1\n        nodePool: gpu\n",
		fmt.Sprintf("      dataloader:\n        replicas: %d\n        nodePool: loaders\n", replicas))
}

// autoscaledCluster is the cluster of a stack with an autoscaled pool of dataloaders.
type autoscaledCluster struct{ cluster }

func (c autoscaledCluster) dataloaders() []corev1.Pod {
	c.t.Helper()
	return c.pods("persia", "app.kubernetes.io/name=dataloader")
}

// refused returns the pods for which the autoscaler makes no node.
func (c autoscaledCluster) refused() map[string]bool {
	c.t.Helper()
	events, err := c.CoreV1().Events("persia").List(c.t.Context(), metav1.ListOptions{FieldSelector: "reason=NotTriggerScaleUp"})
	require.NoError(c.t, err)
	pods := map[string]bool{}
	for _, event := range events.Items {
		if event.Message == "pod didn't trigger scale-up: node pool loaders has its maximum size of 4" {
			pods[event.InvolvedObject.Name] = true
		}
	}
	return pods
}
