package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"persia/internal/status"
	"persia/sandbox/gcp/autoscaler"
	"persia/sandbox/toolchain"
)

// TestPoolLists: nodes come from the first pool of a list that has machines, for StatefulSets, a JobSet, and a queue. Nothing that
// runs moves, and what loses its node begins at the first pool again.
func TestPoolLists(t *testing.T) {
	t.Parallel()
	compile(t, toolchain.OfJobSets, toolchain.OfQueues)
	for _, c := range []struct {
		name, engine string
		updates      int // with one more pool: the class, and the quotas of the queue
	}{{"StatefulSets", "", 1}, {"a queue", "engine: jobset, queue: ads, ", 2}, {"a JobSet", "engine: jobset, ", 1}}[:forms(1, 3)] {
		t.Run(c.name, func(t *testing.T) {
			s := newStack(t, fmt.Sprintf(`
nodePools:
  - {name: first, machineType: g2-standard-8, autoscaling: {minNodes: 0, maxNodes: 2}, taints: [{key: team, value: a, effect: NoSchedule}]}
  - {name: second, machineType: g2-standard-12, spot: true, autoscaling: {minNodes: 0, maxNodes: 2}, taints: [{key: team, value: b, effect: NoSchedule}]}
  - {name: third, machineType: g2-standard-8, zones: [us-central1-c], autoscaling: {minNodes: 0, maxNodes: 2}}
queue: {teams: [{name: ads}]}
jobs:
  - {name: train, suspend: true, %snnWorker: {nodePool: [first, second, third], replicas: 2, resources: {limits: {cpu: "4", memory: 8Gi, nvidia.com/gpu: "1"}}}}`, c.engine))
			none, all := autoscaler.Stock{Machines: new(0)}, autoscaler.Stock{}
			nodes := func() string {
				return fmt.Sprint(len(s.nodesOf("first")), len(s.nodesOf("second")), len(s.nodesOf("third")))
			}
			running := func() (all []types.UID) {
				for _, pod := range s.pods("persia", "persia_job=train,app.kubernetes.io/name=nn-worker") {
					if pod.DeletionTimestamp == nil && status.Ready(pod) {
						all = append(all, pod.UID)
					}
				}
				return all
			}
			s.up()
			s.hasStocks(map[string]autoscaler.Stock{"first": none, "second": none, "third": none})
			var starts sync.WaitGroup // StatefulSets make the update wait
			starts.Go(func() { s.up(`jobs: [{name: train, suspend: false}]`) })
			s.await(func() bool {
				says := s.waits()
				return strings.Contains(says, "first") && strings.Contains(says, "second") && strings.Contains(says, "third") && strings.Contains(says, "GCE out of resources")
			}, "the status says which pools were tried, and the answers")
			s.hasStocks(map[string]autoscaler.Stock{"first": none, "second": none, "third": all})
			starts.Wait()
			s.await(func() bool { return len(running()) == 2 }, "the nn-workers run")
			assert.Equal(s.t, "0 0 2", nodes())
			assert.Empty(s.t, s.up(), "second up")
			before := running()
			s.hasStocks(map[string]autoscaler.Stock{"first": {Machines: new(1)}, "second": none, "third": all})
			lost := s.nodesOf("third")[0]
			require.NoError(s.t, s.CoreV1().Nodes().Delete(s.t.Context(), lost, metav1.DeleteOptions{}))
			require.NoError(s.t, s.CoreV1().Pods("persia").DeleteCollection(s.t.Context(), *metav1.NewDeleteOptions(0),
				metav1.ListOptions{LabelSelector: "persia_job=train", FieldSelector: "spec.nodeName=" + lost}))
			s.await(func() bool { return nodes() == "1 0 1" }, "the lost node comes from the first pool again")
			s.await(func() bool { return len(running()) == 2 }, "the nn-workers run again")
			kept := slices.DeleteFunc(running(), func(uid types.UID) bool { return !slices.Contains(before, uid) })
			assert.Len(s.t, kept, 1, "nothing else moves")
			s.run(t, []step{
				{name: "one more pool changes nothing that runs", edit: `
nodePools: [{name: fourth, machineType: g2-standard-8, spot: true, autoscaling: {minNodes: 0, maxNodes: 2}}]
jobs: [{name: train, nnWorker: {nodePool: [first, second, third, fourth]}}]`, want: map[string]int{"create": 1, "update": c.updates}},
			})
		})
	}
}
