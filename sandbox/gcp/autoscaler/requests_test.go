package autoscaler

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"persia/gcp"
)

// ask creates a request for a number of pods of 6 CPU, one to a node.
func (c cluster) ask(name, class string, count int) {
	c.Helper()
	pod := waiting(name, "6")
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	_, err := c.client.CoreV1().PodTemplates("persia").Create(c.Context(), &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: name},
		Template:   corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
	}, metav1.CreateOptions{})
	require.NoError(c, err)
	_, err = c.requests.Resource(requestKind).Namespace("persia").Create(c.Context(), &unstructured.Unstructured{Object: values{
		"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
		"metadata": values{"name": name, "namespace": "persia"},
		"spec": values{"provisioningClassName": class, "podSets": []any{
			values{"count": int64(count), "podTemplateRef": values{"name": name}},
		}},
	}}, metav1.CreateOptions{})
	require.NoError(c, err)
}

func (c cluster) hasStock(stock Stock) {
	c.Helper()
	text, err := json.Marshal(stock)
	require.NoError(c, err)
	configMaps := c.client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: StockName},
		Data:       map[string]string{"gpu": string(text)},
	}
	if _, err = configMaps.Update(c.Context(), configMap, metav1.UpdateOptions{}); err != nil {
		_, err = configMaps.Create(c.Context(), configMap, metav1.CreateOptions{})
	}
	require.NoError(c, err)
}

// answers looks at the requests twice, the first time to accept them, and returns the conditions
// that are true, with their messages.
func (c cluster) answers(now time.Time) map[string]string {
	c.Helper()
	for range 2 {
		observed, err := c.observe(c.Context())
		require.NoError(c, err)
		_, err = c.answerRequests(c.Context(), newPlan(observed), now)
		require.NoError(c, err)
	}
	requests, err := c.listRequests(c.Context())
	require.NoError(c, err)
	says := map[string]string{}
	for _, r := range requests {
		for _, condition := range r.Status.Conditions {
			if condition.Status == metav1.ConditionTrue {
				says[condition.Type] = condition.Message
			}
		}
	}
	return says
}

func TestRequests(t *testing.T) {
	const (
		isAccepted    = "Provisioning Request was accepted."
		isProvisioned = "Provisioning Request was successfully provisioned."
		isExpired     = "Capacity booking has expired."
	)
	later := time.Now().Add(2 * booking)
	for name, test := range map[string]struct {
		class string
		count int
		// stock is there from the beginning, and changed after the first answer.
		stock, changed Stock
		// first and then are the answers, and nodes are left at the end.
		first, then map[string]string
		nodes       int
	}{
		"all nodes at once": {count: 3, nodes: 3,
			first: map[string]string{accepted: isAccepted, provisioned: isProvisioned},
			then:  map[string]string{accepted: isAccepted, provisioned: isProvisioned, bookingExpired: isExpired}},
		"fewer machines than nodes": {count: 3, stock: Stock{Machines: new(2)}, changed: Stock{Machines: new(2)},
			first: map[string]string{accepted: isAccepted},
			then:  map[string]string{accepted: isAccepted}},
		"machines come later": {count: 3, stock: Stock{Machines: new(2)}, nodes: 3,
			first: map[string]string{accepted: isAccepted},
			then:  map[string]string{accepted: isAccepted, provisioned: isProvisioned, bookingExpired: isExpired}},
		"more than the pool may have": {count: 5,
			first: map[string]string{accepted: isAccepted, failed: "the pods need more nodes than node pool gpu may have, which is 4"},
			then:  map[string]string{accepted: isAccepted, failed: "the pods need more nodes than node pool gpu may have, which is 4"}},
		"Google gives up": {count: 3, stock: Stock{Fails: "no such machines"},
			first: map[string]string{accepted: isAccepted, failed: "no such machines"},
			then:  map[string]string{accepted: isAccepted, failed: "no such machines"}},
		"Google takes nodes back": {count: 3, changed: Stock{Revokes: "seven days are over"},
			first: map[string]string{accepted: isAccepted, provisioned: isProvisioned},
			then:  map[string]string{accepted: isAccepted, provisioned: isProvisioned, capacityRevoked: "seven days are over"}},
		"a class of the open autoscaler": {class: "check-capacity.autoscaling.x-k8s.io", count: 1,
			first: map[string]string{}, then: map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, announcement(t, "gpu", 0, 4, values{"queued": true}), announcement(t, "other", 0, 9, nil))
			c.sync()
			c.hasStock(test.stock)
			if test.class == "" {
				test.class = gcp.ClassQueued
			}
			c.ask("gpus", test.class, test.count)
			assert.Equal(t, test.first, c.answers(time.Now()))
			c.hasStock(test.changed)
			assert.Equal(t, test.then, c.answers(later))
			assert.Len(t, c.nodes(), test.nodes)
		})
	}
}

// TestPodsGetNoNodeOfAQueuedPool checks that a pod without a request gets no node of such a pool.
func TestPodsGetNoNodeOfAQueuedPool(t *testing.T) {
	c := newCluster(t, announcement(t, "gpu", 0, 4, values{"queued": true}), waiting("p", "6", func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}))
	c.sync()
	_, err := c.round(t.Context())
	require.NoError(t, err)
	assert.Empty(t, c.nodes())
}

// TestBookedNodesStay: the nodes of a request wait for its pods until the booking expires.
func TestBookedNodesStay(t *testing.T) {
	c := newCluster(t, announcement(t, "gpu", 0, 4, values{"queued": true}))
	c.idle = newIdle(0)
	c.sync()
	c.ask("gpus", gcp.ClassQueued, 2)
	for round := range 4 {
		_, err := c.round(t.Context())
		require.NoError(t, err)
		assert.Len(t, c.nodes(), []int{0, 2, 2, 2}[round], fmt.Sprint("round ", round))
	}
	require.NoError(t, c.requests.Resource(requestKind).Namespace("persia").Delete(t.Context(), "gpus", metav1.DeleteOptions{}))
	_, err := c.round(t.Context())
	require.NoError(t, err)
	assert.Empty(t, c.nodes(), "nobody waits for them")
}
