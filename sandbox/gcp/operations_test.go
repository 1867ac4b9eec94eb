package gcp

import (
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

const trainersPool = "projects/my-project/locations/us-central1/clusters/persia/nodePools/training"

// assertNoOperation checks that nothing is left to be completed.
func (g simulated) assertNoOperation() {
	g.Helper()
	written, err := g.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).List(g.Context(), metav1.ListOptions{LabelSelector: operationLabel})
	require.NoError(g, err)
	assert.Empty(g, written.Items)
}

// TestResume checks that a command completes the operations of a killed one.
func TestResume(t *testing.T) {
	op := operation{nodePoolKind, trainersPool}
	t.Run("a pool that was being made", func(t *testing.T) {
		g := newGoogle(t)
		g.create(nodePoolType, gpuPool())
		wanted := g.names()
		require.NoError(t, g.client.CoreV1().Nodes().Delete(t.Context(), wanted[0], metav1.DeleteOptions{}))
		require.NoError(t, g.api.begin(t.Context(), op))
		require.NoError(t, g.Resume(t.Context()))
		assert.Equal(t, wanted, g.names())
		g.assertNoOperation()
	})
	t.Run("a pool that was being deleted", func(t *testing.T) {
		g := newGoogle(t)
		g.create(nodePoolType, gpuPool())
		g.create(nodePoolType, poolInputs("others", 1, values{}))
		require.NoError(t, g.api.begin(t.Context(), op))
		require.NoError(t, g.cloud.Delete(op.kind, op.name))
		require.NoError(t, g.Resume(t.Context()))
		assert.Len(t, g.nodes(), 1, "those of the other pool")
		g.assertNoOperation()
	})
	t.Run("a pool that was about to be made", func(t *testing.T) {
		g := newGoogle(t)
		require.NoError(t, g.api.begin(t.Context(), op))
		require.NoError(t, g.Resume(t.Context()))
		assert.Empty(t, g.nodes())
		g.assertNoOperation()
		g.create(nodePoolType, gpuPool())
	})
}

// TestOperationOutlastsTheControlPlane: GKE makes machines whether or not the API
// server of the cluster answers.
func TestOperationOutlastsTheControlPlane(t *testing.T) {
	g := newGoogle(t)
	requests := 0
	g.client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		requests++
		return requests <= 3, nil, &url.Error{Op: "Post", URL: "https://127.0.0.1:6443", Err: errors.New("connection refused")}
	})
	g.create(nodePoolType, gpuPool())
	g.client.ReactionChain = g.client.ReactionChain[1:]
	assert.Len(t, g.nodes(), 2)
	g.assertNoOperation()
}

// TestFailedCreate: a pool that could not be made is not there, nor is any of its nodes.
func TestFailedCreate(t *testing.T) {
	g := newGoogle(t)
	refused, created := errors.New("refused"), 0
	g.client.PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		created++
		return created > 1, nil, refused
	})
	_, err := g.tryCreate(nodePoolType, gpuPool())
	require.ErrorContains(t, err, refused.Error())
	assert.Empty(t, g.nodes())
	g.assertNoOperation()
	g.client.ReactionChain = g.client.ReactionChain[1:]
	g.create(nodePoolType, gpuPool())
	assert.Len(t, g.nodes(), 2)
}
