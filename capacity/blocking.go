package capacity

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

// blocking asks on how many nodes other pods can leave no room for one more.
type blocking struct {
	// nodes are the shapes that a node may have. They, and pod, are amounts by dimension: the scheduler's resources, and one
	// more for each kind of pods that are kept apart, because a node holds one pod of such a kind.
	nodes [][]int64
	pod   []int64
	// others are the pods that can block, with their numbers.
	others [][]int64
	counts []int
}

func newBlocking(nodes []Resources, pod Pods, others []Pods) blocking {
	b := blocking{pod: amounts(pod.Requests)}
	for _, node := range nodes {
		b.nodes = append(b.nodes, amounts(node))
	}
	for _, other := range others {
		b.others = append(b.others, amounts(other.Requests))
		b.counts = append(b.counts, other.Count)
	}
	for i, other := range others {
		if other.Apart {
			b.keepApart(i, other.Name == pod.Name)
		}
	}
	return b
}

func amounts(r Resources) []int64 {
	amounts := make([]int64, len(dimensions))
	for i, d := range dimensions {
		amounts[i] = d.amount(r)
	}
	return amounts
}

// keepApart adds a dimension that allows one pod of a kind per node.
func (b *blocking) keepApart(kind int, podToo bool) {
	for i := range b.nodes {
		b.nodes[i] = append(b.nodes[i], 1)
	}
	b.pod = append(b.pod, 0)
	if podToo {
		b.pod[len(b.pod)-1] = 1
	}
	for i := range b.others {
		b.others[i] = append(b.others[i], 0)
	}
	b.others[kind][len(b.pod)-1] = 1
}

// most returns the largest number of nodes that can be blocked, or one more.
func (b blocking) most() int {
	patterns, complete := b.patterns()
	if !complete {
		return b.mostByVolume()
	}
	return min(b.mostByVolume(), b.mostByPatterns(patterns))
}

// mostPatterns bounds the work. A node of three kinds of pods, thirty of each, has a few thousand patterns.
const mostPatterns = 20000

// patterns returns the minimal sets of pods that leave too little room on a node, as numbers of
// each kind, and reports whether the list is complete.
func (b blocking) patterns() (patterns [][]int, complete bool) {
	taken := make([]int, len(b.others))
	visits := 0
	var extend func(kind int, free []int64) bool
	extend = func(kind int, free []int64) bool {
		if visits++; visits > 20*mostPatterns || len(patterns) > mostPatterns {
			return false
		}
		if !fits(b.pod, free) {
			patterns = append(patterns, append([]int(nil), taken...))
			return true
		}
		for next := kind; next < len(b.others); next++ {
			if taken[next] == b.counts[next] || !fits(b.others[next], free) {
				continue
			}
			taken[next]++
			ok := extend(next, minus(free, b.others[next]))
			taken[next]--
			if !ok {
				return false
			}
		}
		return true
	}
	for _, node := range b.nodes {
		if !extend(0, node) {
			return nil, false
		}
	}
	return patterns, true
}

func fits(pod, free []int64) bool {
	for i := range pod {
		if pod[i] > 0 && pod[i] > free[i] {
			return false
		}
	}
	return true
}

func minus(a, b []int64) []int64 {
	difference := make([]int64, len(a))
	for i := range a {
		difference[i] = a[i] - b[i]
	}
	return difference
}

// mostByPatterns returns an upper bound of the number of blocked nodes: the optimum of the linear
// program in which a pattern may be used in part. It is rarely more than one above the real number.
func (b blocking) mostByPatterns(patterns [][]int) int {
	if len(patterns) == 0 {
		return 0
	}
	kinds, columns := len(b.others), len(patterns)+len(b.others)
	cost := make([]float64, columns)
	uses := mat.NewDense(kinds, columns, nil)
	pods := make([]float64, kinds)
	// At first no pattern is used and all pods are left over.
	start := make([]int, kinds)
	for j, pattern := range patterns {
		cost[j] = -1
		for i, n := range pattern {
			uses.Set(i, j, float64(n))
		}
	}
	for i, count := range b.counts {
		uses.Set(i, len(patterns)+i, 1)
		pods[i] = float64(count)
		start[i] = len(patterns) + i
	}
	const tolerance = 1e-9
	optimum, _, err := lp.Simplex(cost, uses, pods, tolerance, start)
	if err != nil {
		return math.MaxInt
	}
	return int(math.Floor(-optimum + 1e-6))
}

// mostByVolume returns an upper bound without a search: a node is blocked only if the other pods
// fill one of its dimensions beyond what the pod leaves.
func (b blocking) mostByVolume() int {
	blocked := 0
	for d := range b.pod {
		if b.pod[d] == 0 {
			continue
		}
		least := slices.MinFunc(b.nodes, func(x, y []int64) int { return cmp.Compare(x[d], y[d]) })[d]
		all := int64(0)
		for i, other := range b.others {
			all += other[d] * int64(b.counts[i])
		}
		blocked += int(all / (least - b.pod[d] + 1))
	}
	return blocked
}
