package autoscaler

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

func TestIdle(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pool := newPool(t, "workers", 0, 9, nil)
	nodes := nodesOf(pool, 2)
	empty, other := &room{node: nodes[0]}, &room{node: nodes[1]}
	busy := &room{node: nodes[0], pods: several(1, "1")}
	again := &room{node: nodes[0].DeepCopy()}
	again.node.UID = "another of its name"

	type step struct {
		after int
		rooms []*room
		due   []*corev1.Node
		wait  time.Duration
	}
	for name, steps := range map[string][]step{
		"empty for long enough": {
			{0, []*room{empty}, nil, 10 * time.Second},
			{4, []*room{empty, other}, nil, 6 * time.Second},
			{10, []*room{empty, other}, []*corev1.Node{empty.node}, 4 * time.Second},
			{14, []*room{empty, other}, []*corev1.Node{empty.node, other.node}, never},
		},
		"needed again": {
			{0, []*room{empty}, nil, 10 * time.Second},
			{9, []*room{busy}, nil, never},
			{11, []*room{empty}, nil, 10 * time.Second},
			{20, []*room{empty}, nil, time.Second},
		},
		"made again": {
			{0, []*room{empty}, nil, 10 * time.Second},
			{11, []*room{again}, nil, 10 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			idle := newIdle(10 * time.Second)
			for _, step := range steps {
				due, wait := idle.due(step.rooms, start.Add(time.Duration(step.after)*time.Second))
				assert.Equal(t, step.due, due, "after %ds", step.after)
				assert.Equal(t, step.wait, wait, "after %ds", step.after)
			}
		})
	}
}

func TestSpareNodes(t *testing.T) {
	zones := values{"zones": []any{zoneA, zoneB}}
	for _, c := range []struct {
		name      string
		min, has  int
		busy      []int // of the nodes, which alternate between the zones
		wantZones map[string]int
	}{
		{"all", 0, 4, nil, map[string]int{zoneA: 2, zoneB: 2}},
		{"down to the minimum", 2, 4, nil, map[string]int{zoneA: 1, zoneB: 1}},
		{"none below the minimum", 4, 4, nil, map[string]int{}},
		{"not those with pods", 0, 4, []int{0, 2}, map[string]int{zoneB: 2}},
		{"the minimum counts those with pods", 2, 5, []int{0}, map[string]int{zoneA: 2, zoneB: 1}},
		{"the fullest zone first", 4, 5, nil, map[string]int{zoneA: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := newPool(t, "workers", c.min, 9, zones)
			has := nodesOf(pool, c.has)
			var idle []*corev1.Node
			for i, node := range has {
				if !slices.Contains(c.busy, i) {
					idle = append(idle, node)
				}
			}
			got := map[string]int{}
			for _, node := range pool.Spare(has, idle) {
				assert.Contains(t, idle, node)
				got[node.Labels[corev1.LabelTopologyZone]]++
			}
			assert.Equal(t, c.wantZones, got)
		})
	}
}
