package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"persia/internal/testkit"
)

// fullStack has a job, and pools that hold it once.
const fullStack = `
nodePools:
  - {name: rest, nodes: 2}
  - {name: gpu, machineType: g2-standard-8, nodes: 2, gpu: {type: nvidia-l4, count: 1}}
  - {name: servers, machineType: n2-standard-8, nodes: 2}
jobs:
  - name: train
    nnWorker: {nodePool: gpu, replicas: 2, resources: {limits: {cpu: "4", memory: 8Gi, nvidia.com/gpu: "1"}}}
    embeddingParameterServer: {nodePool: servers, replicas: 4, resources: {limits: {cpu: "3", memory: 8Gi}}}
`

// TestEdits edits a running job on nodes that hold it once: `up` refuses the edit or finishes it. All pods of a node may
// be evicted at once, as in an upgrade. Then it edits the real operator's NATS, and a job of PERSIA's operator.
func TestEdits(t *testing.T) {
	t.Parallel()
	s := newStack(t, fullStack, `
storage:
  - {name: bucket, size: 1Ti, gcsFuse: {bucket: madeup-checkpoints, create: {}, sidecar: {ephemeralStorage: 1Gi}}}
  - {name: share, size: 1Ti, nfs: {server: 10.0.0.9, path: /exports}}
jobs: [{name: train, mounts: [{volume: bucket, mountPath: /bucket}, {volume: share, mountPath: /share}]}]`)
	s.up()
	for _, pod := range s.podsOfRole("train", "embedding-ps") {
		assert.NoError(t, s.evict(pod.Name))
	}
	s.run(t, []step{
		{name: "another NFS server of a renamed volume", edit: `
storage: [{name: share, rename: other, nfs: {server: 10.0.0.8}}]
jobs: [{name: train, mounts: [{volume: bucket, mountPath: /bucket}, {volume: other, mountPath: /share}]}]`},
		{name: "a folder of the bucket", edit: `storage: [{name: bucket, mountOptions: [only-dir=second]}]`},
		{name: "fewer servers, which are larger", edit: servers("servers", 2, "6", "16Gi")},
		{name: "smaller servers", edit: servers("servers", 2, "3", "8Gi")},
		{name: "more servers", edit: servers("servers", 4, "3", "8Gi")},
		{name: "roles that change places", edit: `
jobs:
  - name: train
    embeddingParameterServer: {nodePool: rest, replicas: 1, resources: {limits: {cpu: "2", memory: 4Gi}}}
    dataloader: {nodePool: servers, replicas: 4, resources: {limits: {cpu: "3", memory: 8Gi}}}`},
		{name: "a renamed pool", edit: `
nodePools: [{name: gpu, rename: gpus}]
jobs: [{name: train, nnWorker: {nodePool: gpus}}]`},
		{name: "another name of NATS", edit: `nats: {name: broker}`},

		{name: "three NATS servers", edit: `nats: {size: 3}`, want: map[string]int{"update": 2}, then: func() {
			s.assertServers(3)
			await(s.t, func() bool {
				budget, err := s.PolicyV1().PodDisruptionBudgets("nats-io").Get(s.t.Context(), "broker", metav1.GetOptions{})
				return err == nil && budget.Status.ObservedGeneration == budget.Generation && budget.Status.DisruptionsAllowed == 1
			}, "one server may be evicted")
		}},
		{name: "another version of NATS", edit: `nats: {version: 2.12.11}`, want: map[string]int{"update": 1, "replace": 1}, then: func() {
			for _, pod := range s.assertServers(3) {
				assert.Equal(s.t, "nats:2.12.11", pod.Spec.Containers[0].Image, pod.Name)
			}
			service := testkit.Must(s.CoreV1().Services("nats-io").Get(s.t.Context(), "broker-mgmt", metav1.GetOptions{}))(s.t)
			assert.Equal(s.t, "2.12.11", service.Spec.Selector["nats_version"], "servers find each other by it")
		}},
		{name: "other resources of NATS, which the operator would ignore", edit: `nats: {resources: {limits: {cpu: 200m}}}`,
			want: map[string]int{"replace": 2}, then: func() {
				for _, pod := range s.assertServers(3) {
					assert.Equal(s.t, "200m", pod.Spec.Containers[0].Resources.Limits.Cpu().String(), pod.Name)
				}
				await(s.t, func() bool {
					_, client := s.CoreV1().Services("nats-io").Get(s.t.Context(), "broker", metav1.GetOptions{})
					secret, err := s.CoreV1().Secrets("nats-io").Get(s.t.Context(), "broker", metav1.GetOptions{})
					return client == nil && err == nil && strings.Count(string(secret.Data["nats.conf"]), "-mgmt.nats-io.svc:6222") == 3
				}, "the service and the configuration come again")
			}},

		{name: "a job of PERSIA's operator", edit: `jobs: [{name: left, engine: operator, enableMetrics: true}]`, then: func() {
			s.assertUnchanged()
			s.createHeld()
			assert.True(s.t, apierrors.IsTooManyRequests(s.evict(held)), "nothing would create the pod again")
		}},
	})
	s.subtest(t, "a change of the operator's job waits for the last pod", s.assertChangeWaits)
	s.run(t, []step{
		{name: "the operator's job is suspended", edit: `jobs: [{name: left, suspend: true}]`, want: map[string]int{"replace": 2, "delete": 5}},
		{name: "it goes on", edit: `jobs: [{name: left, suspend: false}]`, want: map[string]int{"replace": 2, "create": 5}},
	})
	s.assertAllowed("nats-io:nats-operator", "create pods", "create secrets", "patch natsclusters", "get customresourcedefinitions")
	s.destroy()
}

// servers is an edit of the embedding parameter servers of the job train.
func servers(pool string, replicas int, cpu, memory string) string {
	return fmt.Sprintf(`jobs: [{name: train, embeddingParameterServer: {nodePool: %s, replicas: %d, resources: {limits: {cpu: "%s", memory: %s}}}}]`,
		pool, replicas, cpu, memory)
}

func (c cluster) evict(pod string) error {
	return c.CoreV1().Pods("persia").EvictV1(c.t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: pod}})
}

func (c cluster) assertServers(count int) []corev1.Pod {
	c.t.Helper()
	pods := c.pods("nats-io", "nats_cluster=broker")
	c.assertOn("system", count, pods)
	return pods
}

// held is a pod of the job left, as the operator would create it, which does not end by itself.
const held = "left-dataloader-0"

func (c cluster) createHeld() {
	c.t.Helper()
	_, err := c.CoreV1().Pods("persia").Create(c.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: held, Labels: map[string]string{"persia_job": "left"}, Finalizers: []string{"sandbox.persia.com/hold"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "dataloader", Image: "persiaml/persia-cpu-runtime:latest"}}},
	}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	c.await(func() bool {
		pod, err := c.CoreV1().Pods("persia").Get(c.t.Context(), held, metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	}, "the pod runs")
}

// assertChangeWaits changes the job left: the new one comes only when the old one's pod has ended.
func (s *stack) assertChangeWaits() {
	budgets := s.PolicyV1().PodDisruptionBudgets("persia")
	before := testkit.Must(budgets.Get(s.t.Context(), "left", metav1.GetOptions{}))(s.t)
	s.edit(`jobs: [{name: left, logLevel: debug}]`)
	up := begin(func() error { _, err := s.s.Up(s.t.Context()); return err })
	pods := s.CoreV1().Pods("persia")
	release := func() {
		_, _ = pods.Patch(context.Background(), held, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
	}
	defer release()
	awaitUnless(s.t, patience, up.over, func() bool {
		guard, err := budgets.Get(s.t.Context(), "left", metav1.GetOptions{})
		return err == nil && guard.UID != before.UID && guard.Status.ExpectedPods == 1
	}, "the new guard counts the pod")
	assert.Empty(s.t, s.list("persia.com/v1/persiajobs"), "the new job waits")

	require.NoError(s.t, pods.Delete(s.t.Context(), held, *metav1.NewDeleteOptions(0)))
	release()
	require.NoError(s.t, up.wait())
	assert.Len(s.t, s.list("persia.com/v1/persiajobs"), 1)
}
