package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/capacity"
	"persia/internal/testkit"
)

// TestOneStackOnExistingCluster brings a job up in an existing cluster, by its kubeconfig, and takes it away again.
// Nothing of Google Cloud is in the plan, the cluster's nodes stay as they were, and no second stack comes in. A stack
// that uses the cluster's Kueue does not come into a cluster without one.
func TestOneStackOnExistingCluster(t *testing.T) {
	t.Parallel()
	s := newStack(t, `
nodePools: [{name: work, machineType: c2-standard-30, nodes: 2}]
jobs: [{name: workers, embeddingWorker: {nodePool: work, replicas: 2, resources: {limits: {cpu: "28", memory: 100Gi}}}}]
project: null
cluster: null`)
	s.edit(`cluster: {name: shared, existing: {kubeconfig: ` + s.s.Kubeconfig() + `, systemPool: rest}}`)
	other := stackIn(t, s.dir, "other")
	s.start()
	for _, pool := range s.load().Plan().Pools {
		s.createNodes(pool)
	}
	nodes := s.nodesOf("work")

	_, outputs := s.outputs()
	s.assertOn("work", 2, s.podsOfRole("workers", "embedding-worker"))
	s.assertOn("rest", 1, s.pods("nats-io", "app.kubernetes.io/name=nats-operator"))
	assert.Equal(t, "shared", outputs["clusterName"])
	assert.NotContains(t, outputs, "kubeconfig", "the user has it")
	assert.NotContains(t, testkit.Read(t, s.s.State().File()), "gcp:")

	other.values = s.values
	other.edit()
	other.assertNothingMade("the cluster shared holds the stack organization/persia/madeup@shared, and cannot hold organization/persia/other@shared too")
	assert.Empty(t, s.up())

	require.NoError(t, s.s.Destroy(t.Context()))
	assert.Equal(t, nodes, s.nodesOf("work"))
	assert.Empty(t, s.pods("persia", ""))
	other.edit(`queue: {existing: true, teams: [{name: ranking}]}`)
	_, said, err := preview(t, other.s)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(strings.Fields(said), " "), "no webhook of Kueue is there")
}

// assertNothingMade is [stack.assertRefused], and checks that up is refused, too, before anything is made.
func (s *stack) assertNothingMade(want string) {
	s.t.Helper()
	s.assertRefused(want)
	s.printed.reset()
	_, err := s.s.Up(s.t.Context())
	require.Error(s.t, err)
	assert.NotContains(s.t, s.printed.String(), "kubernetes:")
	assert.NotContains(s.t, s.printed.String(), "gcp:")
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
		_, err := c.CoreV1().Nodes().Create(c.t.Context(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name:        fmt.Sprintf("%s-%d", pool.Name, i),
				Labels:      map[string]string{poolLabel: pool.Name},
				Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
			Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
		}, metav1.CreateOptions{})
		require.NoError(c.t, err)
	}
}
