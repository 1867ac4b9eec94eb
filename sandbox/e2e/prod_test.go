package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestProd: PERSIA's published deployment, 468 replicas and 60 NATS servers.
func TestProd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSandbox(t, dir, "prod")
	err := s.Apply(t.Context())
	require.NoError(t, err)
	c := newCluster(t, s)

	t.Run("roles", func(t *testing.T) {
		c.assertOn("nn-workers", 8, c.pods("persia", "app.kubernetes.io/name=nn-worker"))
		c.assertOn("dataloaders", 240, c.pods("persia", "app.kubernetes.io/name=dataloader"))
		c.assertOn("embedding-workers", 100, c.pods("persia", "app.kubernetes.io/name=embedding-worker"))
		c.assertOn("embedding-ps", 120, c.pods("persia", "app.kubernetes.io/name=embedding-ps"))
		assert.Len(t, c.rolePods("criteo"), 468)
	})
	t.Run("driver", func(t *testing.T) { assertDriverOnGPUNodes(t, c) })
	t.Run("volume", func(t *testing.T) { c.assertBound("workspace", "workspace") })
	t.Run("NATS", func(t *testing.T) { assertNATS(t, c) })
	t.Run("operator's rights", func(t *testing.T) { c.assertOperatorAllowed() })
	t.Run("second up", func(t *testing.T) { assert.Empty(t, upChanges(t, s)) })
	t.Run("refresh", func(t *testing.T) { assert.Empty(t, refreshChanges(t, s)) })
	t.Run("one number edited", func(t *testing.T) {
		project := editStack(t, "prod", "replicas: 8\n", "replicas: 7\n")
		assertOneRoleChanges(t, project, dir, c)
	})
	t.Run("destroy", func(t *testing.T) {
		require.NoError(t, s.Destroy(t.Context()))
		c.assertEmpty()
	})
}

// assertDriverOnGPUNodes finds one driver pod on each node with a GPU, and none
// elsewhere.
func assertDriverOnGPUNodes(t *testing.T, c cluster) {
	got := map[string]int{}
	for _, pod := range c.pods("kube-system", "k8s-app=nvidia-driver-installer") {
		assert.False(t, readySince(pod).IsZero(), "%s is not ready", pod.Name)
		got[pod.Spec.NodeName]++
	}
	want := map[string]int{}
	for name, node := range c.nodes() {
		if gpus := node.Status.Capacity["nvidia.com/gpu"]; !gpus.IsZero() {
			want[name] = 1
		}
	}
	assert.Len(t, want, 8)
	assert.Equal(t, want, got)
}

func assertNATS(t *testing.T, c cluster) {
	pods := c.pods("nats-io", "nats_cluster=persia-nats-service")
	c.assertOn("nats", 60, pods)
	for _, pod := range pods {
		requests := pod.Spec.Containers[0].Resources.Requests
		assert.True(t, requests.Cpu().Equal(resource.MustParse("4")), "%s asks for %s CPU", pod.Name, requests.Cpu())
		assert.True(t, requests.Memory().Equal(resource.MustParse("32Gi")), "%s asks for %s", pod.Name, requests.Memory())
		assert.Equal(t, "us-central1-docker.pkg.dev/my-project/persia-prod-docker-hub/library/nats:2.10.22", pod.Spec.Containers[0].Image)
	}
	secret, err := c.CoreV1().Secrets("nats-io").Get(t.Context(), "persia-nats-service", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Contains(t, string(secret.Data["nats.conf"]), `"max_payload": 52428800`)
	client, err := c.CoreV1().Services("nats-io").Get(t.Context(), "persia-nats-service", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, int32(4222), client.Spec.Ports[0].Port)
}

// editStack copies the project with edits in a stack file: an old text and a new
// one each.
func editStack(t testing.TB, stack string, edits ...string) string {
	t.Helper()
	project := t.TempDir()
	name := "Pulumi." + stack + ".yaml"
	for _, file := range []string{"Pulumi.yaml", name} {
		text, err := os.ReadFile(filepath.Join(repository, file))
		require.NoError(t, err)
		if file == name {
			for edit := range slices.Chunk(edits, 2) {
				require.Equal(t, 1, strings.Count(string(text), edit[0]), "%q in %s", edit[0], name)
				text = []byte(strings.Replace(string(text), edit[0], edit[1], 1))
			}
		}
		require.NoError(t, os.WriteFile(filepath.Join(project, file), text, 0o600))
	}
	return project
}

// assertOneRoleChanges applies a changed number of replicas to that StatefulSet alone.
func assertOneRoleChanges(t *testing.T, project, dir string, c cluster) {
	edited := openSandbox(t, project, dir, "prod")
	before := c.generations()
	assert.Equal(t, map[string]int{"update": 1, "replace": 1}, upChanges(t, edited), "the nn-workers and the completion")
	after := c.generations()
	assert.Greater(t, after["criteo-nn-worker"], before["criteo-nn-worker"])
	delete(before, "criteo-nn-worker")
	delete(after, "criteo-nn-worker")
	assert.Equal(t, before, after, "the other roles are as they were")
	c.assertOn("nn-workers", 7, c.pods("persia", "app.kubernetes.io/name=nn-worker"))
	for _, pod := range c.pods("persia", "app.kubernetes.io/name=nn-worker") {
		assert.Equal(t, "7", environment(pod)["REPLICA_SIZE"])
		assert.Equal(t, "56", environment(pod)["WORLD_SIZE"])
	}
}

// generations count the changes to the specification of each StatefulSet.
func (c cluster) generations() map[string]int64 {
	c.t.Helper()
	sets, err := c.AppsV1().StatefulSets("persia").List(c.t.Context(), metav1.ListOptions{})
	require.NoError(c.t, err)
	generations := map[string]int64{}
	for _, set := range sets.Items {
		generations[set.Name] = set.Generation
	}
	return generations
}

func environment(pod corev1.Pod) map[string]string {
	environment := map[string]string{}
	for _, entry := range pod.Spec.Containers[0].Env {
		environment[entry.Name] = entry.Value
	}
	return environment
}
