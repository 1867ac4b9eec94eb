package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/internal/testkit"
	"persia/sandbox/toolchain"
)

// TestProd: PERSIA's published deployment, 468 replicas and 60 NATS servers.
func TestProd(t *testing.T) {
	t.Parallel()
	s := stackIn(t, t.TempDir(), "prod")
	s.up()
	for role, want := range map[string]struct {
		pool  string
		count int
	}{
		"nn-worker": {"nn-workers", 8}, "dataloader": {"dataloaders", 240}, "embedding-worker": {"embedding-workers", 100}, "embedding-ps": {"embedding-ps", 120},
	} {
		s.assertOn(want.pool, want.count, s.podsOfRole("criteo", role))
	}
	s.assertDriverOnGPUNodes()
	s.assertBound("persia", "workspace", "workspace")
	s.subtest(t, "NATS", s.assertNATS)
	s.assertUnchanged()

	before := s.generations()
	s.run(t, []step{{name: "one number edited", edit: `jobs: [{name: criteo, nnWorker: {replicas: 7}}]`,
		want: map[string]int{"update": 1, "replace": 1}, then: func() { // the nn-workers and the completion
			after := s.generations()
			assert.Greater(s.t, after["criteo-nn-worker"], before["criteo-nn-worker"])
			delete(before, "criteo-nn-worker")
			delete(after, "criteo-nn-worker")
			assert.Equal(s.t, before, after, "the other roles are as they were")
			pods := s.podsOfRole("criteo", "nn-worker")
			s.assertOn("nn-workers", 7, pods)
			for _, pod := range pods {
				assert.Contains(s.t, pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "REPLICA_SIZE", Value: "7"})
				assert.Contains(s.t, pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "WORLD_SIZE", Value: "56"})
			}
		}}})
	s.destroy()
}

// assertDriverOnGPUNodes finds one driver pod on each node with a GPU, and none elsewhere.
func (c cluster) assertDriverOnGPUNodes() {
	c.t.Helper()
	got := map[string]int{}
	for _, pod := range c.pods("kube-system", "k8s-app=nvidia-driver-installer") {
		assert.False(c.t, readySince(pod).IsZero(), "%s is not ready", pod.Name)
		got[pod.Spec.NodeName]++
	}
	want := map[string]int{}
	for name, node := range c.nodes() {
		if gpus := node.Status.Capacity["nvidia.com/gpu"]; !gpus.IsZero() {
			want[name] = 1
		}
	}
	assert.Len(c.t, want, 8)
	assert.Equal(c.t, want, got)
}

func (s *stack) assertNATS() {
	pods := s.pods("nats-io", "nats_cluster=persia-nats-service")
	s.assertOn("nats", 60, pods)
	for _, pod := range pods {
		requests := pod.Spec.Containers[0].Resources.Requests
		assert.True(s.t, requests.Cpu().Equal(resource.MustParse("4")), "%s asks for %s CPU", pod.Name, requests.Cpu())
		assert.True(s.t, requests.Memory().Equal(resource.MustParse("32Gi")), "%s asks for %s", pod.Name, requests.Memory())
		assert.Equal(s.t, "us-central1-docker.pkg.dev/my-project/persia-prod-docker-hub/library/nats:2.12.12", pod.Spec.Containers[0].Image)
	}
	secret := testkit.Must(s.CoreV1().Secrets("nats-io").Get(s.t.Context(), "persia-nats-service", metav1.GetOptions{}))(s.t)
	assert.Contains(s.t, string(secret.Data["nats.conf"]), `"max_payload": 52428800`)
}

// generations count the changes to the specification of each StatefulSet.
func (c cluster) generations() map[string]int64 {
	c.t.Helper()
	sets := testkit.Must(c.AppsV1().StatefulSets("persia").List(c.t.Context(), metav1.ListOptions{}))(c.t)
	generations := map[string]int64{}
	for _, set := range sets.Items {
		generations[set.Name] = set.Generation
	}
	return generations
}

// examples is the project of the example stacks: the manifests of some lie there.
var examples = filepath.Join(repository, "examples")

// TestExamples takes each stack of examples/ through up, another up and a refresh that change nothing, and destroy.
func TestExamples(t *testing.T) {
	nightly(t)
	compile(t, toolchain.OfJobSets, toolchain.OfQueues)
	files := testkit.Must(fs.Glob(os.DirFS(examples), "Pulumi.*.yaml"))(t)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.Split(file, ".")[1]
		if name == "existing" || name == "pedl" {
			continue // TestOneStackOnExistingCluster brings a cluster, and TestPEDL ends the support check
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stackIn(t, t.TempDir(), name, `cluster: {deletionProtection: false}`)
			s.up()
			s.assertUnchanged()
			s.destroy()
		})
	}
}
