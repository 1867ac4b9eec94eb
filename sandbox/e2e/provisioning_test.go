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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"persia/cmd/persia/status"
	"persia/sandbox"
	"persia/sandbox/gcp/autoscaler"
	"persia/sandbox/toolchain"
)

var provisioningRequests = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1", Resource: "provisioningrequests"}

// provisionedReplicas are the replicas of [provisionedStack]: two nn-workers, and four others.
const provisionedReplicas = 6

// provisionedStack writes a stack with a job whose nn-workers run on a pool with queued provisioning.
func provisionedStack(t *testing.T, project string, changes object) {
	t.Helper()
	pools := []object{
		{"name": "gpu", "machineType": "g2-standard-8", "gpu": object{"type": "nvidia-l4", "count": 1},
			"autoscaling": object{"minNodes": 0, "maxNodes": 2}, "queuedProvisioning": true},
		{"name": "servers", "machineType": "n2-standard-8", "autoscaling": object{"minNodes": 0, "maxNodes": 2}},
	}
	train := job("train", object{
		"engine": "jobset", "queue": "ranking",
		"nnWorker":                 gpuRole("gpu", 2, "4", "8Gi", 1),
		"embeddingParameterServer": role("servers", 2, "5", "8Gi"),
	})
	for field, value := range changes {
		train[field] = value
	}
	stackText(t, project, madeUp{pools: pools, jobs: []object{train}})
	rewriteStack(t, project, "madeup", func(configuration object) {
		configuration["persia:queue"] = object{"teams": []object{{"name": "ranking"}}}
	})
}

// provisioned is the cluster of [provisionedStack].
type provisioned struct {
	cluster
	config *rest.Config
	kinds  dynamic.Interface
}

// startProvisioned brings the stack up, with a job that waits for machines in stock.
func startProvisioned(t *testing.T, project string, stocks map[string]autoscaler.Stock) (provisioned, *sandbox.Sandbox) {
	t.Helper()
	compile(t, toolchain.OfJobSets, toolchain.OfQueues)
	provisionedStack(t, project, object{"suspend": true})
	s := newSandboxOf(t, project, t.TempDir(), "madeup")
	require.NoError(t, s.Apply(t.Context()))
	config, err := s.Cluster().RESTConfig()
	require.NoError(t, err)
	p := provisioned{newCluster(t, s), config, dynamic.NewForConfigOrDie(config)}
	p.hasStock(stocks)
	provisionedStack(t, project, nil)
	require.NoError(t, s.Apply(t.Context()))
	return p, s
}

// hasStock says what Google Cloud has for the pools.
func (p provisioned) hasStock(stocks map[string]autoscaler.Stock) {
	p.t.Helper()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: autoscaler.StockName}, Data: map[string]string{}}
	for pool, stock := range stocks {
		text, err := json.Marshal(stock)
		require.NoError(p.t, err)
		configMap.Data[pool] = string(text)
	}
	configMaps := p.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	if _, err := configMaps.Update(p.t.Context(), configMap, metav1.UpdateOptions{}); err != nil {
		_, err = configMaps.Create(p.t.Context(), configMap, metav1.CreateOptions{})
		require.NoError(p.t, err)
	}
}

func gpuStock(stock autoscaler.Stock) map[string]autoscaler.Stock {
	return map[string]autoscaler.Stock{"gpu": stock}
}

// asksAgainAfter has the provisioner replace a request some seconds after GKE has given it up.
func (p provisioned) asksAgainAfter(seconds int) {
	p.t.Helper()
	patch := fmt.Sprintf(`[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--retry-seconds=%d"},
		{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--poll-seconds=0.5"}]`, seconds)
	_, err := p.AppsV1().Deployments("persia-provisioner").Patch(p.t.Context(), "provisioner", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(p.t, err)
	p.await(func() bool {
		pods := p.pods("persia-provisioner", "app.kubernetes.io/name=provisioner")
		return len(pods) == 1 && slices.Contains(pods[0].Spec.Containers[0].Args, fmt.Sprintf("--retry-seconds=%d", seconds))
	}, "the provisioner runs with other times")
}

// configureKueue replaces words in Kueue's configuration, and starts Kueue again.
func (p provisioned) configureKueue(words ...string) {
	p.t.Helper()
	configMap, err := p.CoreV1().ConfigMaps("kueue-system").Get(p.t.Context(), "kueue", metav1.GetOptions{})
	require.NoError(p.t, err)
	before := configMap.Data["config.yaml"]
	configMap.Data["config.yaml"] = strings.NewReplacer(words...).Replace(before)
	require.NotEqual(p.t, before, configMap.Data["config.yaml"])
	_, err = p.CoreV1().ConfigMaps("kueue-system").Update(p.t.Context(), configMap, metav1.UpdateOptions{})
	require.NoError(p.t, err)
	p.dropPods("kueue-system", "app.kubernetes.io/name=kueue", "")
	p.await(func() bool {
		pods := p.pods("kueue-system", "app.kubernetes.io/name=kueue")
		return len(pods) == 1 && pods[0].DeletionTimestamp == nil && !readySince(pods[0]).IsZero()
	}, "Kueue runs with another configuration")
}

// dropPods deletes pods with labels and fields at once, as Kubernetes does a minute after their node is gone.
func (p provisioned) dropPods(namespace, labels, fields string) {
	p.t.Helper()
	now := int64(0)
	err := p.CoreV1().Pods(namespace).DeleteCollection(p.t.Context(), metav1.DeleteOptions{GracePeriodSeconds: &now},
		metav1.ListOptions{LabelSelector: labels, FieldSelector: fields})
	require.NoError(p.t, err)
}

// says returns what the status says that the job waits for.
func (p provisioned) says() string {
	p.t.Helper()
	report, err := status.Read(p.t.Context(), p.config, time.Now())
	require.NoError(p.t, err)
	var says []string
	for _, wait := range report.Jobs[0].Waits {
		says = append(says, wait.Cause+": "+wait.Says)
	}
	return strings.Join(says, "\n")
}

// awaitSays waits until the status says why the job does not run.
func (p provisioned) awaitSays(words string) {
	p.t.Helper()
	said := ""
	awaitUnless(p.t, patience, p.lost, func() bool { said = p.says(); return strings.Contains(said, words) }, "the status says %q", words)
}

// awaitRuns waits until all replicas run, and checks that Kueue has not given the job up.
func (p provisioned) awaitRuns() {
	p.t.Helper()
	p.await(func() bool { return p.running("train") == provisionedReplicas }, "the job runs")
	assert.Len(p.t, p.nodesOf("gpu"), 2)
	for _, workload := range p.workloads() {
		active, set, err := unstructured.NestedBool(workload.Object, "spec", "active")
		require.NoError(p.t, err)
		assert.True(p.t, active || !set, "Kueue has given the job up")
	}
}

// loses takes the nodes of the nn-workers.
func (p provisioned) loses(stock autoscaler.Stock) {
	p.t.Helper()
	p.hasStock(gpuStock(autoscaler.Stock{Revokes: "seven days are over"}))
	p.await(func() bool {
		request, err := p.kinds.Resource(provisioningRequests).Namespace("persia").Get(p.t.Context(), "train", metav1.GetOptions{})
		return err == nil && meta.IsStatusConditionTrue(conditionsOf(p.t, *request), "CapacityRevoked")
	}, "GKE takes the nodes of the request")
	for _, node := range p.nodesOf("gpu") { // of an earlier request
		require.NoError(p.t, p.CoreV1().Nodes().Delete(p.t.Context(), node, metav1.DeleteOptions{}))
	}
	p.hasStock(gpuStock(stock))
	p.dropPods("persia", "persia_job=train,app.kubernetes.io/name=nn-worker", "")
}

// TestProvisioningAnswers: whatever GKE answers, a job runs in the end without help, and the status
// says what it waits for until then.
func TestProvisioningAnswers(t *testing.T) {
	nightly(t)
	t.Parallel()
	project := t.TempDir()
	p, s := startProvisioned(t, project, gpuStock(autoscaler.Stock{Fails: "no such machines"}))
	assert.Empty(t, upChanges(t, s), "second up")
	p.asksAgainAfter(2)
	for _, answer := range []struct {
		name, says string
		stock      autoscaler.Stock
		nodes      int
	}{
		{"Failed", "nodes: GKE has given up, and is asked again: no such machines", autoscaler.Stock{Fails: "no such machines"}, 0},
		{"Accepted", "nodes: GKE waits until it has all nodes at once: Provisioning Request was accepted.", autoscaler.Stock{Machines: new(1)}, 0},
		{"BookingExpired", "nodes: the nn-workers have not used the nodes in time, and GKE is asked again: Capacity booking has expired.", autoscaler.Stock{Broken: true}, 2},
	} {
		t.Run(answer.name, func(t *testing.T) {
			p.hasStock(gpuStock(answer.stock))
			p.awaitSays(answer.says)
			assert.Len(t, p.nodesOf("gpu"), answer.nodes)
			assert.Equal(t, provisionedReplicas-2, p.running("train"), "servers and dataloaders hold their nodes")
		})
	}
	t.Run("Provisioned", func(t *testing.T) {
		p.hasStock(nil)
		p.awaitRuns()
	})
	t.Run("a lost node", func(t *testing.T) {
		servers := uids(p.servers("train"))
		lost := p.nodesOf("gpu")[0]
		require.NoError(t, p.CoreV1().Nodes().Delete(t.Context(), lost, metav1.DeleteOptions{}))
		p.dropPods("persia", "persia_job=train", "spec.nodeName="+lost)
		p.awaitRuns()
		assert.Equal(t, servers, uids(p.servers("train")), "the program asks for one node, and Kueue does not stop the job")
	})
	t.Run("CapacityRevoked", func(t *testing.T) {
		p.asksAgainAfter(15) // a substitute, whose reason to wait the status shows, comes after ten
		p.loses(autoscaler.Stock{Machines: new(0)})
		p.awaitSays("nodes: GKE has taken the nodes back, and is asked again: seven days are over")
		p.hasStock(nil)
		p.awaitRuns()
	})
	t.Run("several pod sets", func(t *testing.T) {
		set := object{"count": int64(1), "podTemplateRef": object{"name": "train"}}
		_, err := p.kinds.Resource(provisioningRequests).Namespace("persia").Create(t.Context(), &unstructured.Unstructured{Object: object{
			"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": object{"name": "two"},
			"spec": object{"provisioningClassName": "queued-provisioning.gke.io", "podSets": []any{set, set}},
		}}, metav1.CreateOptions{})
		assert.ErrorContains(t, err, "currently supports only single PodSet per request")
	})
	t.Run("no machines in time", func(t *testing.T) {
		p.configureKueue("timeout: 30m", "timeout: 30s", "recoveryTimeout: 30m", "recoveryTimeout: 10s", "backoffBaseSeconds: 60", "backoffBaseSeconds: 15")
		p.loses(autoscaler.Stock{Machines: new(0)})
		p.await(func() bool { return p.podsOfSet("train") == 0 }, "the job holds no node")
		p.await(func() bool {
			_, err := p.kinds.Resource(provisioningRequests).Namespace("persia").Get(t.Context(), "train", metav1.GetOptions{})
			return err != nil
		}, "the request for nodes goes with the servers")
		p.hasStock(nil)
		p.awaitRuns()
	})
	p.assertAllowed("system:serviceaccount:persia-provisioner:provisioner", "list jobsets", "create podtemplates", "create provisioningrequests", "delete provisioningrequests")

	require.NoError(t, s.Destroy(t.Context()))
	p.assertEmpty()
}
