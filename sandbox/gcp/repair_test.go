package gcp

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/sandbox/gcp/nodepools"
)

// TestRepair: a lost node of a fixed pool comes back without its pods, a pool that is
// gone gets none, and the autoscaler's pools are left to the autoscaler.
func TestRepair(t *testing.T) {
	silent := slog.New(slog.DiscardHandler)
	t.Run("a lost node", func(t *testing.T) {
		g := newGoogle(t)
		g.create(nodePoolType, gpuPool())
		wanted := g.names()
		_, err := g.client.CoreV1().Pods("persia").Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "nn-worker"}, Spec: corev1.PodSpec{NodeName: wanted[1]},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		g.lose(wanted[1])
		require.NoError(t, nodepools.RepairOnce(t.Context(), g.client, silent))
		assert.Equal(t, wanted, g.names())
		pods, err := g.client.CoreV1().Pods("persia").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Empty(t, pods.Items)
	})
	t.Run("a pool that is deleted meanwhile", func(t *testing.T) {
		g := newGoogle(t)
		g.create(nodePoolType, gpuPool())
		list, err := g.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{LabelSelector: nodepools.FixedLabel})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		pool, err := nodepools.FromConfigMap(&list.Items[0])
		require.NoError(t, err)
		require.NoError(t, g.delete(nodePoolType, gpuPool()))
		require.NoError(t, pool.Repair(t.Context(), g.client, silent))
		assert.Empty(t, g.nodes())
	})
	t.Run("an autoscaled pool", func(t *testing.T) {
		g := newGoogle(t)
		g.create(nodePoolType, autoscaledPool(t, 1, 5))
		g.lose(g.names()[0])
		require.NoError(t, nodepools.RepairOnce(t.Context(), g.client, silent))
		assert.Empty(t, g.nodes())
	})
}
