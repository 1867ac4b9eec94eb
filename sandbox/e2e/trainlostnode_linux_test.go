package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"persia/sandbox/node"
)

// testLostNodes loses the node of the nn-worker that coordinates, in the middle of a training.
// Where only the kubelet is killed, the node's pods run on, and that nn-worker still answers.
func (r *training) testLostNodes(t *testing.T) {
	r.assertTells(t, "set")
	for _, lost := range []struct {
		name string
		// off is the file that switches something off.
		off func(dir, name string) string
		// runsOn is whether the pods run on.
		runsOn bool
	}{
		{"the kubelet is killed", func(dir, name string) string { return node.ProgramOff(dir, name, "kubelet") }, true},
		{"the machine is switched off", node.Off, false},
	}[:forms(1, 2)] {
		ok := t.Run(lost.name, func(t *testing.T) {
			leaves := r.place(t, "set")
			last := r.trainOn(t, "set")
			before := r.replicasOn(leaves, "set")
			require.Contains(t, before, "set-nn-worker-0-0")
			require.Contains(t, before, "set-embedding-ps-0-0")
			off := lost.off(filepath.Join(r.dir, "train", "node"), leaves)
			require.NoError(t, os.MkdirAll(filepath.Dir(off), 0o755))
			require.NoError(t, os.WriteFile(off, nil, 0o600))
			// With the node lost, down would wait for its pods.
			defer func() { _ = os.Remove(off) }()
			started := time.Now()
			r.awaitResumed(t, "set", last)

			assert.False(t, isNodeReady(r.nodes()[leaves]), "the node is still lost")
			after := r.replicasOn(leaves, "set")
			for replica, pod := range before {
				if assert.Contains(t, after, replica, "its old pod stays while its node is lost") {
					assert.Equal(t, pod.UID, after[replica].UID)
					assert.NotNil(t, after[replica].DeletionTimestamp, "%s was told to end", replica)
				}
				if lost.runsOn {
					assert.NotEmpty(t, r.processes(t, pod.UID, "/launch.py"), "the old %s runs on", replica)
				}
			}
			r.trainOn(t, "set")
			fmt.Fprintf(t.Output(), "TIME %s: the next checkpoint comes after %s\n", t.Name(), time.Since(started).Round(time.Second))

			require.NoError(t, os.Remove(off))
			await(t, func() bool { return isNodeReady(r.nodes()[leaves]) }, "%s is ready again", leaves)
			await(t, func() bool {
				for replica, pod := range r.replicasOn(leaves, "set") {
					if pod.UID == before[replica].UID {
						return false
					}
				}
				return true
			}, "the old pods end when their node is back")
		})
		if !ok {
			return
		}
	}
}

// place has some replicas of a job on the node that it returns, the coordinating nn-worker among
// them, and on the other one what the job needs.
func (r *training) place(t *testing.T, job string) (leaves string) {
	t.Helper()
	leaves = r.pod(t, job+"-nn-worker-0").Spec.NodeName
	var stays string
	for name, found := range r.nodes() {
		if found.Annotations[node.Annotation] == "real" && name != leaves {
			stays = name
		}
	}
	require.NotEmpty(t, stays, "another real node")
	const completion = "app.kubernetes.io/name=completion,persia_job="
	r.move(t, leaves, "jobset-system", "")
	r.move(t, leaves, "nats-io", "")
	r.move(t, leaves, "persia", completion+job)
	r.move(t, stays, "persia", "app.kubernetes.io/name=embedding-ps,batch.kubernetes.io/job-completion-index=0,persia_job="+job)
	return leaves
}

// move has pods leave a node for another one.
func (r *training) move(t *testing.T, from, namespace, selector string) {
	t.Helper()
	r.cordon(t, from, true)
	defer r.cordon(t, from, false)
	pods := r.pods(namespace, selector)
	require.NotEmpty(t, pods, "%s %s", namespace, selector)
	for _, pod := range pods {
		if pod.Spec.NodeName == from {
			r.deletePods(t, pod)
		}
	}
	await(t, func() bool {
		now := r.pods(namespace, selector)
		moved := slices.ContainsFunc(now, func(pod corev1.Pod) bool { return pod.Spec.NodeName == from || readySince(pod).IsZero() })
		return len(now) == len(pods) && !moved
	}, "the pods %s of %s leave %s", selector, namespace, from)
}

// cordon keeps new pods from a node, or no longer does.
func (r *training) cordon(t *testing.T, name string, cordoned bool) {
	t.Helper()
	_, err := r.CoreV1().Nodes().Patch(t.Context(), name, types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"spec": {"unschedulable": %t}}`, cordoned), metav1.PatchOptions{})
	require.NoError(t, err)
}

// replicasOn returns the pods of a job's roles on a node, by the names of their replicas.
func (r *training) replicasOn(node, job string) map[string]corev1.Pod {
	found := map[string]corev1.Pod{}
	for _, pod := range r.pods("persia", "jobset.sigs.k8s.io/jobset-name="+job) {
		if pod.Spec.NodeName == node {
			found[replicaOf(pod)] = pod
		}
	}
	return found
}

func isNodeReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// assertTells checks that the replicas of a job tell its metrics gateway how they are.
func (r *training) assertTells(t *testing.T, job string) {
	t.Helper()
	const script = `
		for i in $(busybox seq 100); do
			metrics=$(busybox wget -q -O - http://%[1]s-metrics-gateway-service:9091/metrics)
			[ "$(echo "$metrics" | busybox grep -c '^persia_replica_alive{.*job="%[1]s".* 1$')" -ge 6 ] && echo all replicas && break
			sleep 2
		done
		echo "$metrics" | busybox grep ^persia_replica
	`
	r.volume.arrive(t, job, checkpointBatches, 0)
	metrics := callScript(t, r, "persia", map[string]string{"persia_job": job}, fmt.Sprintf(script, job))
	assert.True(t, strings.HasPrefix(metrics, "all replicas\n"), metrics)
}
