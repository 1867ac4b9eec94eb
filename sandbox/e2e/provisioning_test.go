package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"persia/internal/status"
	"persia/internal/testkit"
	"persia/sandbox/gcp/autoscaler"
	"persia/sandbox/toolchain"
)

// TestProvisioning: whatever GKE answers to a request for the nodes of nn-workers, the job runs in the end
// without help, and the status says what it waits for until then.
func TestProvisioning(t *testing.T) {
	nightly(t)
	t.Parallel()
	compile(t, toolchain.OfJobSets, toolchain.OfQueues)
	s := newStack(t, `
queue: {teams: [{name: ranking}]}
nodePools:
  - {name: gpu, machineType: g2-standard-8, gpu: {type: nvidia-l4, count: 1}, autoscaling: {minNodes: 0, maxNodes: 2}, queuedProvisioning: true}
  - {name: more, machineType: g2-standard-8, gpu: {type: nvidia-l4, count: 1}, autoscaling: {minNodes: 0, maxNodes: 2}, queuedProvisioning: true}
  - {name: servers, machineType: n2-standard-8, autoscaling: {minNodes: 0, maxNodes: 2}}
jobs:
  - name: train
    engine: jobset
    queue: ranking
    suspend: true
    nnWorker: {nodePool: [gpu, more], replicas: 2, resources: {limits: {cpu: "4", memory: 8Gi, nvidia.com/gpu: "1"}}}
    embeddingParameterServer: {nodePool: servers, replicas: 2, resources: {limits: {cpu: "5", memory: 8Gi}}}`)
	const replicas = 6
	s.up()
	refusal := autoscaler.Stock{Refusal: "no such machines"}
	s.hasStocks(map[string]autoscaler.Stock{"gpu": {Machines: new(0)}})
	s.up(`jobs: [{name: train, suspend: false}]`)
	assert.Empty(t, s.up(), "second up")
	s.asksAgainSoon()
	for _, answer := range []struct {
		says      string // for the first pool after its name, and for the second after the time and the first's answer
		gpu, more autoscaler.Stock
		nodes     int
	}{
		{": no such machines; more: GKE has given up, and is asked again: no such machines", refusal, refusal, 0},
		{"nodes: gpu: GKE waits until it has all nodes at once: Provisioning Request was accepted.", autoscaler.Stock{Machines: new(1)}, refusal, 0},
		{": no such machines; more: the nn-workers have not used the nodes in time, and GKE is asked again: Capacity booking has expired.",
			refusal, autoscaler.Stock{Broken: true}, 2},
	} {
		s.subtest(t, answer.says, func() {
			s.hasStocks(map[string]autoscaler.Stock{"gpu": answer.gpu, "more": answer.more})
			s.await(func() bool { return strings.Contains(s.waits(), answer.says) }, "the status says it")
			assert.Equal(s.t, []int{0, answer.nodes}, []int{len(s.nodesOf("gpu")), len(s.nodesOf("more"))})
			assert.Equal(s.t, replicas-2, s.running("train"), "servers and dataloaders hold their nodes")
		})
	}
	s.subtest(t, "the second pool has machines", func() {
		s.hasStocks(map[string]autoscaler.Stock{"gpu": refusal})
		s.awaitRunning("train", replicas)
		assert.Len(s.t, s.nodesOf("more"), 2)
	})
	s.subtest(t, "a lost node", func() {
		servers := uids(s.podsOfRole("train", "embedding-ps"))
		s.hasStocks(nil)
		lost := s.nodesOf("more")[0]
		require.NoError(s.t, s.CoreV1().Nodes().Delete(s.t.Context(), lost, metav1.DeleteOptions{}))
		// As Kubernetes does a minute later.
		require.NoError(s.t, s.CoreV1().Pods("persia").DeleteCollection(s.t.Context(), *metav1.NewDeleteOptions(0),
			metav1.ListOptions{LabelSelector: "persia_job=train", FieldSelector: "spec.nodeName=" + lost}))
		s.awaitRunning("train", replicas)
		assert.Equal(s.t, servers, uids(s.podsOfRole("train", "embedding-ps")), "the program asks for one node, and Kueue does not stop the job")
		assert.Len(s.t, s.nodesOf("gpu"), 1, "it asks the first pool again")
		active, said := field(s.t, s.workloadOf("train"), "spec", "active").(bool)
		assert.True(s.t, active || !said, "Kueue has given the job up")
	})
	s.assertAllowed("persia-provisioner:provisioner", "list jobsets", "create podtemplates", "create provisioningrequests", "delete provisioningrequests")
	s.destroy()
}

// hasStocks says what Google Cloud has for pools.
func (c cluster) hasStocks(stocks map[string]autoscaler.Stock) {
	c.t.Helper()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: autoscaler.StockName}, Data: map[string]string{}}
	for pool, stock := range stocks {
		configMap.Data[pool] = string(testkit.Must(json.Marshal(stock))(c.t))
	}
	configMaps := c.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	if _, err := configMaps.Update(c.t.Context(), configMap, metav1.UpdateOptions{}); err != nil {
		testkit.Must(configMaps.Create(c.t.Context(), configMap, metav1.CreateOptions{}))(c.t)
	}
}

// asksAgainSoon has the provisioner replace a request two seconds after GKE has given it up.
func (c cluster) asksAgainSoon() {
	c.t.Helper()
	const wait = "--retry-seconds=2"
	patch := fmt.Sprintf(`[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": %q},
		{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--poll-seconds=0.5"}]`, wait)
	testkit.Must(c.AppsV1().Deployments("persia-provisioner").Patch(c.t.Context(), "provisioner", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}))(c.t)
	c.await(func() bool {
		pods := c.pods("persia-provisioner", "app.kubernetes.io/name=provisioner")
		return len(pods) == 1 && slices.Contains(pods[0].Spec.Containers[0].Args, wait)
	}, "the provisioner runs with other times")
}

// waits returns what the status says that the first job waits for.
func (c cluster) waits() string {
	c.t.Helper()
	config := testkit.Must(c.s.Cluster().RESTConfig())(c.t)
	report := testkit.Must(status.Read(c.t.Context(), config, time.Now()))(c.t)
	var waits []string
	for _, wait := range report.Jobs[0].Waits {
		waits = append(waits, wait.Cause+": "+wait.Says)
	}
	return strings.Join(waits, "\n")
}
