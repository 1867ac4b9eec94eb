package autoscaler

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"persia/internal/testkit"
)

// cluster is a control plane, client-go's fake, with an autoscaler.
type cluster struct {
	*testing.T
	*autoscaler
	client *fake.Clientset
	// watching signals that the autoscaler receives changes.
	watching chan struct{}
	// ended is closed when the autoscaler has ended.
	ended chan struct{}
}

func newCluster(t *testing.T, objects ...runtime.Object) cluster {
	client := fake.NewClientset(objects...)
	requests := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{requestKind: "ProvisioningRequestList"})
	c := cluster{
		T:          t,
		autoscaler: newAutoscaler(client, requests, slog.New(slog.DiscardHandler)),
		client:     client,
		watching:   make(chan struct{}, 1),
		ended:      make(chan struct{}),
	}
	c.settle = time.Millisecond
	c.recorder = record.NewFakeRecorder(100)
	// The fake client loses what happens between an informer's list and watch.
	client.PrependWatchReactor("pods", func(action clienttesting.Action) (bool, watch.Interface, error) {
		pods, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		c.watching <- struct{}{}
		return true, pods, err
	})
	return c
}

// sync makes the autoscaler read the cluster without running it.
func (c cluster) sync() {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	_, err := c.watch(ctx)
	require.NoError(c, err)
	c.Cleanup(func() {
		cancel()
		c.workloads.Shutdown()
		c.described.Shutdown()
	})
}

// runs runs the autoscaler until the test ends.
func (c cluster) runs() {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	var err error
	go func() {
		defer close(c.ended)
		err = c.run(ctx)
	}()
	c.Cleanup(func() {
		cancel()
		<-c.ended
		assert.NoError(c, err)
	})
	<-c.watching
}

func (c cluster) nodes() []corev1.Node {
	c.Helper()
	list, err := c.client.CoreV1().Nodes().List(c.Context(), metav1.ListOptions{})
	require.NoError(c, err)
	return list.Items
}

func (c cluster) awaitNodes(count int) {
	c.Helper()
	holds := false
	require.Eventually(c, func() bool {
		select {
		case <-c.ended:
			return true
		default:
			holds = len(c.nodes()) == count
			return holds
		}
	}, testkit.Patience, 5*time.Millisecond, "%d nodes", count)
	require.True(c, holds, "the autoscaler has ended before there were %d nodes", count)
}

func TestPoolsGrowAndShrink(t *testing.T) {
	c := newCluster(t, announcement(t, "workers", 1, 3, nil))
	c.idle = newIdle(20 * time.Millisecond)
	c.runs()
	for _, pod := range several(5, "6") {
		_, err := c.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	c.awaitNodes(3)
	for _, pod := range several(5, "6") {
		require.NoError(t, c.client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
	}
	c.awaitNodes(1)
}

func TestPodsThatWaitForANewNodeGetNoSecondOne(t *testing.T) {
	c := newCluster(t, announcement(t, "workers", 0, 9, nil), waiting("p", "1"), waiting("q", "7"))
	c.sync()
	for range 3 {
		_, err := c.round(t.Context())
		require.NoError(t, err)
		assert.Len(t, c.nodes(), 2)
	}
}

func TestPodsAreToldWhatToExpect(t *testing.T) {
	c := newCluster(t, announcement(t, "workers", 0, 9, nil), waiting("p", "1"), waiting("q", "99"))
	c.sync()
	_, err := c.round(t.Context())
	require.NoError(t, err)
	events := c.recorder.(*record.FakeRecorder).Events
	assert.Equal(t, "Normal TriggeredScaleUp pod triggered scale-up of node pool workers", <-events)
	assert.Equal(t, "Normal NotTriggerScaleUp pod didn't trigger scale-up: it fits on no new node of an autoscaled pool", <-events)
	assert.Empty(t, events)
}

func TestNodesOfAPoolThatHasChangedAreTakenBack(t *testing.T) {
	announced := announcement(t, "workers", 0, 9, nil)
	configMaps := corev1.SchemeGroupVersion.WithResource("configmaps")
	for name, change := range map[string]func(cluster) error{
		"gone": func(c cluster) error {
			return c.client.Tracker().Delete(configMaps, announced.Namespace, announced.Name)
		},
		"changed": func(c cluster) error {
			changed := announced.DeepCopy()
			changed.ResourceVersion = "2"
			return c.client.Tracker().Update(configMaps, changed, announced.Namespace)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, announced.DeepCopy(), waiting("p", "6"), waiting("q", "6"))
			c.sync()
			created := 0
			c.client.PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				if created++; created == 1 {
					return false, nil, change(c)
				}
				return false, nil, nil
			})
			_, err := c.round(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 2, created)
			assert.Empty(t, c.nodes())
		})
	}
}

func TestANodeThatAPodHasComeToStays(t *testing.T) {
	pool := newPool(t, "workers", 0, 9, nil)
	node := nodesOf(pool, 1)[0]
	for _, row := range []struct {
		name string
		pod  *corev1.Pod
		want int
	}{
		{"a pod of its own", waiting("p", "1", on(node)), 1},
		{"a pod of a DaemonSet", waiting("p", "1", on(node), ofDaemonSet(daemonSet("d", "1"))), 0},
		{"a pod elsewhere", waiting("p", "1"), 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCluster(t, node.DeepCopy(), row.pod)
			require.NoError(t, c.remove(t.Context(), pool, node))
			nodes := c.nodes()
			require.Len(t, nodes, row.want)
			for _, node := range nodes {
				assert.False(t, node.Spec.Unschedulable, "it takes pods again")
			}
		})
	}
}
