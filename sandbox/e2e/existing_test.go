package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/capacity"
)

// TestOneStackOnExistingCluster brings a job up in an existing cluster, by its
// kubeconfig, and takes it away again. Nothing of Google Cloud is in the plan, the
// cluster's nodes stay as they were, and no second stack comes in. A stack that uses the cluster's
// Kueue does not come into a cluster without one.
func TestOneStackOnExistingCluster(t *testing.T) {
	t.Parallel()
	project, dir := t.TempDir(), t.TempDir()
	stack := madeUp{
		pools: []object{{"name": "work", "machineType": "c2-standard-30", "nodes": 2}},
		jobs:  []object{job("workers", object{"embeddingWorker": role("work", 2, "28", "100Gi")})},
	}
	configuration := stackText(t, project, stack)
	s := newSandboxOf(t, project, dir, "madeup")
	delete(configuration, "persia:project")
	configuration["persia:cluster"] = object{"name": "shared",
		"existing": object{"kubeconfig": s.Kubeconfig(), "systemPool": "rest"}}
	writeConfiguration(t, project, "madeup", configuration)
	loaded, err := load(configuration)
	require.NoError(t, err)

	require.NoError(t, s.Cluster().Start(t.Context(), t.Output()))
	c := newCluster(t, s)
	for _, pool := range loaded.Plan().Pools {
		c.createNodes(pool)
	}
	nodes := c.nodesOf("work")

	result, err := s.Up(t.Context())
	require.NoError(t, err)
	c.assertOn("work", 2, c.pods("persia", "app.kubernetes.io/name=embedding-worker"))
	c.assertOn("rest", 1, c.pods("nats-io", "app.kubernetes.io/name=nats-operator"))
	assert.Equal(t, "shared", result.Outputs["clusterName"].Value)
	assert.NotContains(t, result.Outputs, "kubeconfig", "the user has it")
	state, err := os.ReadFile(s.State().File())
	require.NoError(t, err)
	assert.NotContains(t, string(state), "gcp:")

	writeConfiguration(t, project, "other", configuration)
	assertRefused(t, project, dir, "other", "the cluster shared holds the stack organization/persia/madeup, and cannot hold organization/persia/other too")
	assert.Empty(t, upChanges(t, s))

	require.NoError(t, s.Destroy(t.Context()))
	assert.Equal(t, nodes, c.nodesOf("work"))
	assert.Empty(t, c.pods("persia", ""))
	configuration["persia:queue"] = object{"existing": true, "teams": []object{{"name": "ranking"}}}
	writeConfiguration(t, project, "other", configuration)
	assertRefused(t, project, dir, "other", "persia:queue.existing: the cluster shared does not serve kueue.x-k8s.io/v1beta2; install Kueue 0.15")
}

// assertRefused previews a stack and brings it up, which is refused before anything of it
// is made.
func assertRefused(t *testing.T, project, dir, stack, want string) {
	t.Helper()
	var output strings.Builder
	s := openSandboxTo(t, &output, project, dir, stack)
	preview := func() error { _, err := s.Preview(t.Context()); return err }
	up := func() error { return s.Apply(t.Context()) }
	for _, command := range []func() error{preview, up} {
		output.Reset()
		require.Error(t, command(), output.String())
		assert.Contains(t, strings.Join(strings.Fields(output.String()), " "), want)
		assert.NotContains(t, output.String(), "kubernetes:", "nothing is made")
		assert.NotContains(t, output.String(), "gcp:", "nothing is made")
	}
	assert.NoError(t, s.Down(t.Context()))
}

// createNodes makes the nodes of a pool as somebody else would have made them.
func (c cluster) createNodes(pool capacity.PoolPlan) {
	c.t.Helper()
	for i := range pool.Nodes {
		amounts := corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(pool.Node.MilliCPU, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(pool.Node.MemoryBytes, resource.BinarySI),
			corev1.ResourcePods:   *resource.NewQuantity(pool.Node.Pods, resource.DecimalSI),
		}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name:        fmt.Sprintf("%s-%d", pool.Name, i),
				Labels:      map[string]string{poolLabel: pool.Name},
				Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
			Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
		}
		_, err := c.CoreV1().Nodes().Create(context.Background(), node, metav1.CreateOptions{})
		require.NoError(c.t, err)
	}
}
