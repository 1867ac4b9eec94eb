package e2e

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"persia/sandbox/gcp/autoscaler"
)

// stockOut is when Google Cloud has machines for the pools of a job, and whether it first gives a
// request up. A second counts as a minute: the autoscaler in the sandbox is as fast, and the test makes
// Kueue and the provisioner so.
type stockOut struct {
	servers, gpus time.Duration
	fails         bool
}

func randomStockOut(seed uint64) stockOut {
	random := rand.New(rand.NewPCG(seed, 0))
	upTo := func(seconds int) time.Duration { return time.Duration(random.IntN(seconds*1000)) * time.Millisecond }
	return stockOut{servers: upTo(20), gpus: upTo(40), fails: random.IntN(3) == 0}
}

// stock returns the machines that Google Cloud has some time after the job was activated.
func (o stockOut) stock(after time.Duration) map[string]autoscaler.Stock {
	stocks := map[string]autoscaler.Stock{}
	if after < o.servers {
		stocks["servers"] = autoscaler.Stock{Machines: new(1)}
	}
	if after < o.gpus {
		stocks["gpu"] = autoscaler.Stock{Machines: new(1)}
		if o.fails {
			stocks["gpu"] = autoscaler.Stock{Fails: "no such machines"}
		}
	}
	return stocks
}

// paid is how long nodes of a job were there while the job did not run.
type paid struct{ gpus, servers time.Duration }

func (p paid) String() string {
	return fmt.Sprintf("%.1f hours of idle GPU nodes and %.1f hours of other nodes", p.gpus.Minutes(), p.servers.Minutes())
}

func (p *paid) add(other paid) { p.gpus, p.servers = p.gpus+other.gpus, p.servers+other.servers }

// TestStockOuts: a job whose machines come at random times runs in the end, and no GPU is held
// before the servers run. As a control, a job for which Kueue asks pays for idle GPUs. The long form has
// several sandboxes at the same time.
func TestStockOuts(t *testing.T) {
	t.Parallel()
	first := firstSeed(t)
	sandboxes, rounds, controls := forms(1, 4), forms(2, 50), forms(1, 13)
	var mu sync.Mutex
	var all outcome
	t.Run("sandbox", func(t *testing.T) {
		for i := range sandboxes {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				if sandboxes > 1 {
					t.Parallel() // behind all tests that wait to run
				}
				one := survived(t, first+uint64(i*rounds), rounds, controls)
				mu.Lock()
				defer mu.Unlock()
				all.ours.add(one.ours)
				all.plain.add(one.plain)
				all.gaveUp += one.gaveUp
			})
		}
	})
	report(t, "%d stock-outs: the program paid %s", sandboxes*rounds, all.ours)
	report(t, "%d stock-outs: Kueue's AdmissionCheck paid %s, and %d jobs waited for a person", sandboxes*controls, all.plain, all.gaveUp)
}

// outcome adds up the idle nodes that the program and plain Kueue paid for, and counts the jobs that
// plain Kueue gave up.
type outcome struct {
	ours, plain paid
	gaveUp      int
}

// survived has a job survive some stock-outs, and a job for which Kueue asks some of them again.
func survived(t *testing.T, first uint64, rounds, controls int) outcome {
	t.Helper()
	p, s := startProvisioned(t, t.TempDir(), gpuStock(autoscaler.Stock{Machines: new(0)}))
	p.asksAgainAfter(2)
	p.configureKueue("timeout: 30m", "timeout: 30s", "recoveryTimeout: 30m", "recoveryTimeout: 30s",
		"backoffBaseSeconds: 60", "backoffBaseSeconds: 1", "backoffMaxSeconds: 3600", "backoffMaxSeconds: 60")
	var all outcome
	for round := range rounds {
		seed := first + uint64(round)
		idle, ran := p.survive("train", randomStockOut(seed))
		require.True(t, ran, "seed %d", seed)
		all.ours.add(idle)
	}
	p.activate("train", false)
	p.askByKueue()
	for round := range controls {
		p.createPlain()
		idle, ran := p.survive("plain", randomStockOut(first+uint64(round)))
		p.deletePlain()
		all.plain.add(idle)
		if !ran {
			all.gaveUp++
		}
	}
	p.removeKueuesCheck()
	require.NoError(t, s.Destroy(t.Context()))
	return all
}

// survive activates a job, and takes it out of its queue when it runs. It returns what the wait
// has cost, and whether the job ran without help.
func (p provisioned) survive(job string, out stockOut) (paid, bool) {
	p.t.Helper()
	p.activate(job, false)
	p.await(func() bool { return p.podsOfSet(job) == 0 }, "the job stops")
	for _, pool := range []string{"gpu", "servers"} {
		require.NoError(p.t, p.CoreV1().Nodes().DeleteCollection(p.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: poolLabel + "=" + pool}))
	}
	p.hasStock(out.stock(0))
	p.activate(job, true)
	started, last := time.Now(), time.Now()
	var idle paid
	gaveUp := false
	p.await(func() bool {
		p.hasStock(out.stock(time.Since(started)))
		gpus, servers := len(p.nodesOf("gpu")), len(p.nodesOf("servers"))
		if job == "train" {
			p.assertServersFirst()
		}
		elapsed := time.Since(last)
		last = time.Now()
		if p.running(job) == provisionedReplicas {
			return true
		}
		idle.add(paid{time.Duration(gpus) * elapsed, time.Duration(servers) * elapsed})
		gaveUp = !p.isActive(job)
		return gaveUp
	}, "the job "+job+" runs")
	return idle, !gaveUp
}

// assertServersFirst checks that no nodes are booked unless all other replicas run, or Kueue stops
// the job right now.
func (p provisioned) assertServersFirst() {
	p.t.Helper()
	request, err := p.kinds.Resource(provisioningRequests).Namespace("persia").Get(p.t.Context(), "train", metav1.GetOptions{})
	if err != nil {
		return // there is no request
	}
	conditions := conditionsOf(p.t, *request)
	if !meta.IsStatusConditionTrue(conditions, "Provisioned") || meta.IsStatusConditionTrue(conditions, "BookingExpired") {
		return
	}
	running := p.running("train")
	suspended, _, err := unstructured.NestedBool(p.jobSet("train").Object, "spec", "suspend")
	require.NoError(p.t, err)
	if !suspended {
		assert.GreaterOrEqual(p.t, running, provisionedReplicas-2, "GPUs are there, and not all servers")
	}
}

func (p provisioned) jobSet(job string) *unstructured.Unstructured {
	p.t.Helper()
	set, err := p.kinds.Resource(jobSets).Namespace("persia").Get(p.t.Context(), job, metav1.GetOptions{})
	require.NoError(p.t, err)
	return set
}

func (p provisioned) isActive(job string) bool {
	p.t.Helper()
	return field(p.t, p.workloadOf(job), "spec", "active") != false
}

// activate lets a job into its queue, or takes it out.
func (p provisioned) activate(job string, active bool) {
	p.t.Helper()
	var workload unstructured.Unstructured
	p.await(func() bool { workload = p.workloadOf(job); return workload.GetName() != "" }, "Kueue knows the job")
	_, err := p.kinds.Resource(workloads).Namespace("persia").Patch(p.t.Context(), workload.GetName(), types.MergePatchType,
		fmt.Appendf(nil, `{"spec": {"active": %t}}`, active), metav1.PatchOptions{})
	require.NoError(p.t, err)
}

var (
	admissionChecks = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "admissionchecks"}
	requestConfigs  = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "provisioningrequestconfigs"}
)

// create creates an object.
func (p provisioned) create(resource schema.GroupVersionResource, namespace string, fields object) {
	p.t.Helper()
	_, err := p.kinds.Resource(resource).Namespace(namespace).Create(p.t.Context(), &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{})
	require.NoError(p.t, err)
}

// askByKueue has Kueue ask for nodes with the settings of its guide.
func (p provisioned) askByKueue() {
	p.t.Helper()
	const kueue = "kueue.x-k8s.io/v1beta2"
	p.create(requestConfigs, "", object{"apiVersion": kueue, "kind": "ProvisioningRequestConfig", "metadata": object{"name": "gpus"}, "spec": object{
		"provisioningClassName": "queued-provisioning.gke.io", "managedResources": []any{"nvidia.com/gpu"},
		"retryStrategy": object{"backoffLimitCount": int64(3), "backoffBaseSeconds": int64(1), "backoffMaxSeconds": int64(30)},
	}})
	p.create(admissionChecks, "", object{"apiVersion": kueue, "kind": "AdmissionCheck", "metadata": object{"name": "gpus"}, "spec": object{
		"controllerName": "kueue.x-k8s.io/provisioning-request",
		"parameters":     object{"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "gpus"},
	}})
	p.allowKueueToAsk()
	p.patchQueue(`{"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": "gpus", "onFlavors": ["persia-gpu"]}]}}}`)
}

// allowKueueToAsk grants the rights that upstream's Kueue has, and that the program's Kueue does not need.
func (p provisioned) allowKueueToAsk() {
	p.t.Helper()
	meta := metav1.ObjectMeta{Name: "kueue-asks"}
	rule := func(group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"create", "delete", "patch", "update"}}
	}
	_, err := p.RbacV1().ClusterRoles().Create(p.t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		rule("", "podtemplates"), rule("autoscaling.x-k8s.io", "provisioningrequests"),
	}}, metav1.CreateOptions{})
	require.NoError(p.t, err)
	_, err = p.RbacV1().ClusterRoleBindings().Create(p.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kueue-system", Name: "kueue"}},
	}, metav1.CreateOptions{})
	require.NoError(p.t, err)
}

// createPlain creates the job plain, for which the program does not ask. A job that Kueue has given up
// does not always run again when a person activates it, so each stock-out has a new one.
func (p provisioned) createPlain() {
	p.t.Helper()
	spec := p.jobSet("train").Object["spec"].(object)
	spec["suspend"] = true
	spec["network"].(object)["subdomain"] = "plain"
	for _, role := range spec["replicatedJobs"].([]any) {
		template, _, err := unstructured.NestedMap(role.(object), "template", "spec", "template")
		require.NoError(p.t, err)
		unstructured.RemoveNestedField(template, "metadata", "annotations", "autoscaling.x-k8s.io/consume-provisioning-request")
		unstructured.RemoveNestedField(template, "metadata", "annotations", "autoscaling.x-k8s.io/provisioning-class-name")
		require.NoError(p.t, unstructured.SetNestedMap(role.(object), template, "template", "spec", "template"))
		require.NoError(p.t, unstructured.SetNestedField(role.(object), "plain", "template", "spec", "template", "metadata", "labels", "persia_job"))
	}
	p.create(jobSets, "persia", object{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": spec, "metadata": object{
		"name": "plain", "labels": object{"kueue.x-k8s.io/queue-name": "ranking", "kueue.x-k8s.io/priority-class": "persia-default"},
	}})
}

// deletePlain deletes the job plain with its pods.
func (p provisioned) deletePlain() {
	p.t.Helper()
	foreground := metav1.DeletePropagationForeground
	require.NoError(p.t, p.kinds.Resource(jobSets).Namespace("persia").Delete(p.t.Context(), "plain", metav1.DeleteOptions{PropagationPolicy: &foreground}))
	p.await(func() bool {
		_, err := p.kinds.Resource(jobSets).Namespace("persia").Get(p.t.Context(), "plain", metav1.GetOptions{})
		workload := p.workloadOf("plain")
		return apierrors.IsNotFound(err) && workload.GetName() == ""
	}, "the job plain is gone")
}

// removeKueuesCheck leaves nothing that the stack does not know.
func (p provisioned) removeKueuesCheck() {
	p.t.Helper()
	p.patchQueue(`{"spec": {"admissionChecksStrategy": null}}`)
	for _, resource := range []schema.GroupVersionResource{admissionChecks, requestConfigs} {
		require.NoError(p.t, p.kinds.Resource(resource).Delete(p.t.Context(), "gpus", metav1.DeleteOptions{}))
	}
}

func (p provisioned) patchQueue(patch string) {
	p.t.Helper()
	_, err := p.kinds.Resource(clusterQueues).Patch(p.t.Context(), "persia-ranking", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(p.t, err)
}
