package autoscaler

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"persia/sandbox/gcp/gke"
	"persia/sandbox/gcp/google"
)

const (
	zoneA = "us-central1-a"
	zoneB = "us-central1-b"
)

type values = map[string]any

// newPool returns a pool of n2-standard-8, which leaves more than 7 of 8 CPU to pods.
func newPool(t *testing.T, name string, least, most int, config values) gke.Pool {
	t.Helper()
	node := values{"machineType": "n2-standard-8", "imageType": "COS_CONTAINERD", "diskType": "pd-balanced", "diskSizeGb": 100.0}
	maps.Copy(node, config)
	zones := node["zones"]
	if zones == nil {
		zones = []any{zoneA}
	}
	delete(node, "zones")
	pool, err := gke.NewPool("projects/my-project/locations/us-central1/clusters/persia/nodePools/"+name, google.Clone(values{
		"locations":         zones,
		"autoscaling":       values{"totalMinNodeCount": least, "totalMaxNodeCount": most},
		"maxPodsConstraint": values{"maxPodsPerNode": "110"},
		"config":            node,
	}), nil)
	require.NoError(t, err)
	return pool
}

// nodesOf returns the first nodes of a pool.
func nodesOf(pool gke.Pool, count int) []*corev1.Node {
	var nodes []*corev1.Node
	for range count {
		next := pool.Next(nodes)[0]
		next.UID = types.UID("uid of " + next.Name)
		nodes = append(nodes, next)
	}
	return nodes
}

// option changes a pod.
type option func(*corev1.Pod)

// waiting returns a pod for which the scheduler has found no node.
func waiting(name, cpu string, options ...option) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}},
	}
	asks(corev1.ResourceCPU, cpu)(pod)
	for _, option := range options {
		option(pod)
	}
	return pod
}

// several are waiting pods that are alike.
func several(count int, cpu string, options ...option) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range count {
		pods = append(pods, waiting(fmt.Sprintf("p%d", i), cpu, options...))
	}
	return pods
}

func priority(value int32) option { return func(pod *corev1.Pod) { pod.Spec.Priority = &value } }

// nominated returns a pod that waits for others to leave a node.
func nominated(node *corev1.Node) option {
	return func(pod *corev1.Pod) { pod.Status.NominatedNodeName = node.Name }
}

func asks(name corev1.ResourceName, amount string) option {
	return func(pod *corev1.Pod) {
		requests := &pod.Spec.Containers[0].Resources.Requests
		if *requests == nil {
			*requests = corev1.ResourceList{}
		}
		(*requests)[name] = resource.MustParse(amount)
	}
}

func tolerates(key string) option {
	return func(pod *corev1.Pod) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

func on(node *corev1.Node) option {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeName = node.Name
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	}
}

func ofDaemonSet(set *appsv1.DaemonSet) option {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	}
}

// apart keeps pods with this label on nodes of their own.
func apart(namespaces ...string) option {
	labels := map[string]string{"apart": "yes"}
	return func(pod *corev1.Pod) {
		pod.Labels = labels
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
				Namespaces:    namespaces,
			}},
		}}
	}
}

func inZone(zone string) option {
	return func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone},
				}},
			}}},
		}}
	}
}

func daemonSet(name, cpu string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)},
		Spec:       appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: waiting("", cpu).Spec}},
	}
}

// planned counts the new nodes by pool and zone.
func (p *plan) planned() map[string]int {
	count := map[string]int{}
	for _, pool := range p.pools {
		for _, node := range p.nodesOf(pool, true) {
			count[pool.Name()+" "+node.Labels[corev1.LabelTopologyZone]]++
		}
	}
	return count
}

func TestPlan(t *testing.T) {
	const a, b = "workers " + zoneA, "workers " + zoneB
	taints := func(effect string) values {
		return values{"taints": []any{values{"key": "dedicated", "value": "x", "effect": effect}}}
	}
	bothZones := values{"zones": []any{zoneB, zoneA}}
	for _, c := range []struct {
		name string
		// config is the node configuration of the pool workers, which has 0 to 3 nodes.
		config values
		// has is how many nodes the pool has, and there are the pods on its first.
		has     int
		there   []*corev1.Pod
		pods    []*corev1.Pod
		daemons []*appsv1.DaemonSet
		want    map[string]int
	}{
		{name: "nothing waits"},
		{name: "one more", pods: several(4, "2"), want: map[string]int{a: 2}},
		{name: "up to the maximum", pods: several(8, "4"), want: map[string]int{a: 3}},
		{
			name: "the largest first",
			pods: []*corev1.Pod{waiting("a", "3"), waiting("b", "3"), waiting("c", "4"), waiting("d", "4")},
			want: map[string]int{a: 2},
		},
		{name: "ephemeral storage", pods: several(2, "1", asks(corev1.ResourceEphemeralStorage, "30Gi")), want: map[string]int{a: 2}},
		{name: "none of a resource that no node has", pods: several(1, "1", asks("example.com/fpga", "0")), want: map[string]int{a: 1}},

		{name: "untolerated taint", config: taints("NO_SCHEDULE"), pods: several(1, "1")},
		{name: "tolerated taint", config: taints("NO_SCHEDULE"), pods: several(1, "1", tolerates("dedicated")), want: map[string]int{a: 1}},
		{
			name:   "GPUs",
			config: values{"machineType": "g2-standard-24", "accelerators": []any{values{"acceleratorType": "nvidia-l4", "acceleratorCount": 2}}},
			pods:   several(3, "1", asks("nvidia.com/gpu", "1"), tolerates("nvidia.com/gpu")),
			want:   map[string]int{a: 2},
		},

		{name: "zones level", config: bothZones, pods: several(3, "5"), want: map[string]int{a: 2, b: 1}},
		{name: "the zone that a pod asks for", config: bothZones, pods: several(2, "5", inZone(zoneB)), want: map[string]int{b: 2}},

		{name: "room on a node that there is", has: 1, pods: several(1, "6")},
		{name: "pods kept apart", pods: several(2, "1", apart()), want: map[string]int{a: 2}},
		{name: "pods kept apart from those that are there", has: 1, there: several(1, "1", apart()), pods: several(1, "1", apart()), want: map[string]int{a: 1}},

		{name: "DaemonSets take their share", pods: several(2, "3"), daemons: []*appsv1.DaemonSet{daemonSet("d", "1500m")}, want: map[string]int{a: 2}},
		{
			name: "DaemonSets take their share once", has: 1, daemons: []*appsv1.DaemonSet{daemonSet("d", "3")},
			there: several(1, "3", ofDaemonSet(daemonSet("d", "3"))), pods: several(1, "4"),
		},

		{name: "finished pods leave room", has: 1, pods: several(1, "6"), there: several(1, "6", func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodSucceeded
		})},
		{name: "not yet looked at by the scheduler", pods: several(1, "1", func(pod *corev1.Pod) { pod.Status.Conditions = nil })},
		{name: "about to go", pods: several(1, "1", func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{} })},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := newPool(t, "workers", 0, 3, c.config)
			s := snapshot{pools: []gke.Pool{pool}, nodes: nodesOf(pool, c.has), pods: c.pods, daemonSets: c.daemons}
			for _, pod := range c.there {
				phase := pod.Status.Phase
				on(s.nodes[0])(pod)
				if phase != "" {
					pod.Status.Phase = phase
				}
				s.pods = append(s.pods, pod)
			}
			plan := newPlan(s)
			if c.want == nil {
				c.want = map[string]int{}
			}
			assert.Equal(t, c.want, plan.planned())
		})
	}
}

func TestPlanLeavesNodesAloneThatTakeNoPods(t *testing.T) {
	pool := newPool(t, "workers", 0, 3, nil)
	planned := func(nodes []*corev1.Node) int {
		plan := newPlan(snapshot{pools: []gke.Pool{pool}, nodes: nodes, pods: several(1, "1")})
		return len(plan.nodesOf(pool, true))
	}
	starting, cordoned := nodesOf(pool, 1), nodesOf(pool, 1)
	starting[0].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	assert.Zero(t, planned(starting), "the pod waits for the node that starts")
	cordoned[0].Spec.Unschedulable = true
	assert.Equal(t, 1, planned(cordoned), "a cordoned node takes no pod")
}

func TestPlanGivesTheLastNodeToTheHighestPriority(t *testing.T) {
	pool := newPool(t, "workers", 0, 1, nil)
	plan := newPlan(snapshot{
		pools: []gke.Pool{pool},
		pods:  []*corev1.Pod{waiting("a", "6", priority(1)), waiting("b", "5", priority(3)), waiting("c", "7", priority(2))},
	})
	require.Len(t, plan.rooms, 1)
	assert.Equal(t, "b", plan.rooms[0].pods[0].Name)
}

func TestPlanLeavesNominatedPodsTheirNode(t *testing.T) {
	pool := newPool(t, "workers", 0, 3, nil)
	nodes := nodesOf(pool, 2)
	for _, c := range []struct {
		name string
		pods []*corev1.Pod
		want int
	}{
		{"others leave", []*corev1.Pod{waiting("p", "6", on(nodes[0])), waiting("q", "6", nominated(nodes[0]))}, 0},
		{"others have left", []*corev1.Pod{waiting("q", "6", nominated(nodes[0])), waiting("r", "6")}, 1},
		{"the node is gone", []*corev1.Pod{waiting("p", "6", on(nodes[0])), waiting("q", "6", nominated(nodes[1]))}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := newPlan(snapshot{pools: []gke.Pool{pool}, nodes: nodes[:1], pods: c.pods})
			assert.Len(t, plan.nodesOf(pool, true), c.want)
		})
	}
}
