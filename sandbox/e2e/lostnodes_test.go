package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// lostNodes is how many nodes of each role BenchmarkLostNode loses.
const lostNodes = 20

var roleNames = []string{"nn-worker", "dataloader", "embedding-worker", "embedding-ps"}

// BenchmarkLostNode measures how long after the last heartbeat of its node a replica is ready again:
// with JobSets, and with StatefulSets, for which somebody must say that the node does not come back.
// The benchmark says so as soon as Kubernetes knows that the node is lost.
func BenchmarkLostNode(b *testing.B) {
	buildJobSet(b)
	for _, engine := range []string{"jobset", "statefulset"} {
		b.Run(engine, func(b *testing.B) {
			for range b.N {
				benchmarkLostNode(b, engine)
			}
		})
	}
}

func benchmarkLostNode(b *testing.B, engine string) {
	project, each := b.TempDir(), object{"engine": engine}
	for _, name := range []string{"nnWorker", "dataloader", "embeddingWorker", "embeddingParameterServer"} {
		each[name] = role("work", lostNodes, "5", "1Gi") // one on each node
	}
	nodes := lostNodes * (len(roleNames) + 1)
	stackText(b, project, madeUp{jobs: []object{job("train", each)}, pools: []object{
		{"name": "work", "machineType": "n2-standard-8", "nodes": nodes, "spareNodes": lostNodes},
	}})
	s := newSandboxOf(b, project, b.TempDir(), "madeup")
	s.Cluster().KubeletLeases = true
	require.NoError(b, s.Apply(b.Context()))
	config, err := s.Cluster().RESTConfig()
	require.NoError(b, err)
	client := kubernetes.NewForConfigOrDie(config)
	l := lostReplicas{b, client}
	for _, role := range roleNames {
		took := l.lose(role, engine == "statefulset")
		slices.Sort(took)
		report := func(at int) float64 { return took[at].Seconds() }
		b.ReportMetric(report(len(took)/2), role+"-median-s")
		fmt.Printf("DONE %s %s: ready again %.0f to %.0f s after the last heartbeat, median %.0f s of %d\n",
			engine, role, report(0), report(len(took)-1), report(len(took)/2), len(took))
	}
	b.ReportMetric(0, "ns/op")
}

// lostReplicas loses the nodes of replicas.
type lostReplicas struct {
	b      *testing.B
	client kubernetes.Interface
}

func (l lostReplicas) pods(role string) []corev1.Pod {
	l.b.Helper()
	list, err := l.client.CoreV1().Pods("persia").List(l.b.Context(), metav1.ListOptions{LabelSelector: "persia_job=train,app.kubernetes.io/name=" + role})
	require.NoError(l.b, err)
	return list.Items
}

// ready returns the replicas that run, by name.
func (l lostReplicas) ready(role string) map[string]corev1.Pod {
	l.b.Helper()
	ready := map[string]corev1.Pod{}
	for _, pod := range l.pods(role) {
		if pod.DeletionTimestamp == nil && !readySince(pod).IsZero() {
			ready[replicaOf(pod)] = pod
		}
	}
	return ready
}

// lose ends the heartbeats of the nodes of all replicas of a role, and returns how long each replica
// took to be ready again. Each node is in a zone of its own: of each zone, Kubernetes gives up one node
// in ten seconds.
func (l lostReplicas) lose(role string, outOfService bool) []time.Duration {
	l.b.Helper()
	await(l.b, func() bool { return len(l.ready(role)) == lostNodes }, "all of %s run", role)
	before, last := l.ready(role), map[string]time.Time{}
	for replica, pod := range before {
		zone := fmt.Sprintf(`{"metadata":{"labels":{"topology.kubernetes.io/zone":%q}}}`, "zone-of-"+replica)
		_, err := l.client.CoreV1().Nodes().Patch(l.b.Context(), pod.Spec.NodeName, types.MergePatchType, []byte(zone), metav1.PatchOptions{})
		require.NoError(l.b, err)
	}
	for replica, pod := range before {
		last[replica] = loseNode(l.b, l.client, pod.Spec.NodeName)
	}
	if outOfService {
		for _, pod := range before {
			await(l.b, func() bool { return !unreachableSince(l.node(pod.Spec.NodeName)).IsZero() }, "%s is unreachable", pod.Spec.NodeName)
			l.taint(pod.Spec.NodeName, []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "lost", Effect: corev1.TaintEffectNoExecute}})
		}
	}
	took := map[string]time.Duration{}
	await(l.b, func() bool {
		for replica, pod := range l.ready(role) {
			if _, ok := took[replica]; !ok && pod.UID != before[replica].UID {
				took[replica] = time.Since(last[replica])
			}
		}
		return len(took) == lostNodes
	}, "all of %s run again", role)
	for _, pod := range before {
		l.taint(pod.Spec.NodeName, nil)
		findNode(l.b, l.client, pod.Spec.NodeName)
	}
	var durations []time.Duration
	for _, one := range took {
		durations = append(durations, one)
	}
	return durations
}

func (l lostReplicas) node(name string) corev1.Node {
	l.b.Helper()
	node, err := l.client.CoreV1().Nodes().Get(l.b.Context(), name, metav1.GetOptions{})
	require.NoError(l.b, err)
	return *node
}

// taint says that a node is out of service, or with nil, that it is not.
func (l lostReplicas) taint(name string, more []corev1.Taint) {
	l.b.Helper()
	require.NoError(l.b, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node := l.node(name)
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
		node.Spec.Taints = append(node.Spec.Taints, more...)
		_, err := l.client.CoreV1().Nodes().Update(l.b.Context(), &node, metav1.UpdateOptions{})
		return err
	}))
}
