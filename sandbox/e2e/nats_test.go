package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// broker is the NatsCluster of the stacks here.
const broker = "broker"

// TestNATS takes one NATS cluster through all that can be changed of it, by the real
// operator. At some points real servers are started from the configuration that the
// operator has written.
func TestNATS(t *testing.T) {
	t.Parallel()
	n := newNATS(t)

	t.Run("one server", func(t *testing.T) {
		n.up(t)
		n.assertServers(t, 1)
		n.awaitBudget(t, 1)
	})
	t.Run("three servers", func(t *testing.T) {
		n.settings["size"] = 3
		assert.Equal(t, map[string]int{"update": 2}, n.up(t), "the NatsCluster and its disruption budget")
		n.assertServers(t, 3)
		n.awaitBudget(t, 1)
	})
	t.Run("another version", func(t *testing.T) {
		n.settings["version"] = "2.10.20"
		assert.Equal(t, map[string]int{"update": 1, "replace": 1}, n.up(t), "the NatsCluster, and its disruption budget")
		for _, pod := range n.assertServers(t, 3) {
			assert.Equal(t, "nats:2.10.20", pod.Spec.Containers[0].Image, pod.Name)
		}
		service, err := n.CoreV1().Services("nats-io").Get(t.Context(), broker+"-mgmt", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, "2.10.20", service.Spec.Selector["nats_version"], "servers find each other by it")
	})
	t.Run("other resources", func(t *testing.T) {
		before := n.uids(t)
		n.settings["resources"] = object{"limits": object{"cpu": "200m", "memory": "512Mi"}}
		n.write(t)
		preview, err := n.s.Preview(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2, preview.ChangeSummary["replace"], "preview shows what the operator would ignore")
		assert.Equal(t, map[string]int{"replace": 2}, n.up(t), "the NatsCluster, and its disruption budget")
		for _, pod := range n.assertServers(t, 3) {
			assert.Equal(t, "200m", pod.Spec.Containers[0].Resources.Limits.Cpu().String(), pod.Name)
			assert.NotContains(t, before, string(pod.UID))
		}
		n.assertWhole(t)
	})
	t.Run("nothing to do", func(t *testing.T) {
		assert.Empty(t, n.up(t))
		assert.Empty(t, refreshChanges(t, n.s))
	})
	t.Run("the operator's rights", func(t *testing.T) {
		n.t = t
		n.assertOperatorAllowed()
	})
}

const password = "correct-horse-battery-staple"

// secure returns a secret in the form of a stack file. The sandbox accepts plain text, and encrypts
// it.
func secure(text string) object { return object{"secure": text} }

// nats is a stack with nothing but NATS.
type nats struct {
	cluster
	project  string
	settings object
}

func newNATS(t *testing.T) *nats {
	t.Helper()
	n := &nats{project: t.TempDir(), settings: object{
		"name": broker, "size": 1,
		"resources": object{"limits": object{"cpu": "100m", "memory": "512Mi"}},
	}}
	n.write(t)
	n.cluster = cluster{t: t, s: newSandboxOf(t, n.project, t.TempDir(), "madeup")}
	return n
}

func (n *nats) write(t *testing.T) {
	t.Helper()
	stackText(t, n.project, madeUp{nats: n.settings})
}

// up brings the settings up, and counts the changes.
func (n *nats) up(t *testing.T) map[string]int {
	t.Helper()
	n.write(t)
	changes := upChanges(t, n.s)
	if n.Interface == nil {
		n.cluster = newCluster(n.t, n.s)
	}
	return changes
}

func (n *nats) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	list, err := n.CoreV1().Pods("nats-io").List(t.Context(), metav1.ListOptions{LabelSelector: "nats_cluster=" + broker})
	require.NoError(t, err)
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

func (n *nats) assertServers(t *testing.T, count int) []corev1.Pod {
	t.Helper()
	pods := n.pods(t)
	assert.Len(t, pods, count)
	for _, pod := range pods {
		assert.False(t, readySince(pod).IsZero(), "%s is not ready", pod.Name)
	}
	return pods
}

func (n *nats) uids(t *testing.T) []string {
	t.Helper()
	var uids []string
	for _, pod := range n.pods(t) {
		uids = append(uids, string(pod.UID))
	}
	return uids
}

// awaitBudget sees Kubernetes count how many servers may be evicted.
func (n *nats) awaitBudget(t *testing.T, allowed int32) {
	t.Helper()
	await(t, func() bool {
		budget, err := n.PolicyV1().PodDisruptionBudgets("nats-io").Get(t.Context(), broker, metav1.GetOptions{})
		return err == nil && budget.Status.ObservedGeneration == budget.Generation && budget.Status.DisruptionsAllowed == allowed
	}, "evictions that the disruption budget allows")
}

// configuration returns the configuration that the operator has written for the servers.
func (n *nats) configuration(t *testing.T) string {
	t.Helper()
	secret, err := n.CoreV1().Secrets("nats-io").Get(t.Context(), broker, metav1.GetOptions{})
	require.NoError(t, err)
	return string(secret.Data["nats.conf"])
}

// assertWhole checks that what belonged to a replaced NatsCluster has come again.
func (n *nats) assertWhole(t *testing.T) {
	t.Helper()
	await(t, func() bool {
		_, client := n.CoreV1().Services("nats-io").Get(t.Context(), broker, metav1.GetOptions{})
		_, routes := n.CoreV1().Services("nats-io").Get(t.Context(), broker+"-mgmt", metav1.GetOptions{})
		_, secret := n.CoreV1().Secrets("nats-io").Get(t.Context(), broker, metav1.GetOptions{})
		return client == nil && routes == nil && secret == nil && strings.Count(n.configuration(t), "-mgmt.nats-io.svc:6222") == 3
	}, "services and configuration")
}
