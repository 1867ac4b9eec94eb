package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// loseNode ends the heartbeats of a node, and returns when the last one was. kwok leaves a node whose
// lease another holds alone, with its pods, as a kubelet that no longer runs does.
func loseNode(t testing.TB, client kubernetes.Interface, name string) (last time.Time) {
	t.Helper()
	holdLease(t, client, name, time.Hour)
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return lease.Spec.RenewTime.Time
}

// findNode gives a lost node back to kwok.
func findNode(t testing.TB, client kubernetes.Interface, name string) {
	t.Helper()
	holdLease(t, client, name, time.Second)
}

func holdLease(t testing.TB, client kubernetes.Interface, node string, duration time.Duration) {
	t.Helper()
	leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		lease, err := leases.Get(t.Context(), node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		holder, seconds, now := "lost", int32(duration.Seconds()), metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &holder, &seconds, &now
		_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		return err
	}))
}

// replicaOf names the replica that a pod is, whichever engine creates it.
func replicaOf(pod corev1.Pod) string {
	if host := pod.Spec.Hostname; host != "" {
		return host
	}
	return pod.Name
}

// assertLostNode checks the order of events after a node's last heartbeat, for each replica on it:
// the node is unreachable, the pod is told to end, and a substitute is created and runs on another
// node while the old pod stays.
func (c cluster) assertLostNode(t *testing.T, job string) {
	node := c.podsOfRole(job, "embedding-ps")[0].Spec.NodeName
	on := func(pods []corev1.Pod) (here, elsewhere map[string]corev1.Pod) {
		here, elsewhere = map[string]corev1.Pod{}, map[string]corev1.Pod{}
		for _, pod := range pods {
			if pod.Spec.NodeName == node {
				here[replicaOf(pod)] = pod
			} else if !readySince(pod).IsZero() {
				elsewhere[replicaOf(pod)] = pod
			}
		}
		return here, elsewhere
	}
	lost, elsewhere := on(c.rolePods(job))
	for replica := range lost {
		require.NotContains(t, elsewhere, replica)
	}
	last := loseNode(t, c, node)
	c.await(func() bool {
		_, elsewhere = on(c.rolePods(job))
		for replica := range lost {
			if _, ok := elsewhere[replica]; !ok {
				return false
			}
		}
		return true
	}, "each replica of the lost node runs on another node")

	stay, _ := on(c.rolePods(job))
	unreachable := unreachableSince(c.nodes()[node])
	require.False(t, unreachable.IsZero(), "%s is unreachable", node)
	assert.False(t, unreachable.Before(last.Truncate(time.Second)), "the heartbeat of %s was the last", node)
	for replica, pod := range lost {
		old, substitute := stay[replica], elsewhere[replica]
		assert.Equal(t, pod.UID, old.UID, "%s stays on the lost node", replica)
		if !assert.NotNil(t, old.DeletionTimestamp, replica) {
			continue
		}
		told := old.DeletionTimestamp.Add(-time.Duration(*old.DeletionGracePeriodSeconds) * time.Second)
		assert.False(t, told.Before(unreachable), "%s ends once its node is unreachable", replica)
		assert.False(t, substitute.CreationTimestamp.Time.Before(told), "the substitute of %s comes once it ends", replica)
		assert.False(t, readySince(substitute).Before(substitute.CreationTimestamp.Time), replica)
	}
	findNode(t, c, node)
	c.await(func() bool { here, _ := on(c.rolePods(job)); return len(here) == 0 }, "the old pods are gone with the node's return")
}

// unreachableSince is when Kubernetes began to evict the pods of a node, or zero.
func unreachableSince(node corev1.Node) time.Time {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeUnreachable && taint.Effect == corev1.TaintEffectNoExecute && taint.TimeAdded != nil {
			return taint.TimeAdded.Time
		}
	}
	return time.Time{}
}
