package autoscaler

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// never is the wait if nothing is due.
const never = time.Duration(math.MaxInt64)

// idle remembers since when nodes have stood empty.
type idle struct {
	unneeded time.Duration
	since    map[nodeKey]time.Time
}

// nodeKey distinguishes a node from a later one of the same name.
type nodeKey struct {
	name string
	uid  types.UID
}

func newIdle(unneeded time.Duration) *idle {
	return &idle{unneeded: unneeded, since: map[nodeKey]time.Time{}}
}

// due returns the nodes that have stood empty for long enough, and how long it is
// until the next will have.
func (i *idle) due(rooms []*room, now time.Time) (nodes []*corev1.Node, wait time.Duration) {
	since := map[nodeKey]time.Time{}
	wait = never
	for _, room := range rooms {
		if len(room.pods) > 0 {
			continue
		}
		key := nodeKey{room.node.Name, room.node.UID}
		start, known := i.since[key]
		if !known {
			start = now
		}
		since[key] = start
		if left := i.unneeded - now.Sub(start); left > 0 {
			wait = min(wait, left)
		} else {
			nodes = append(nodes, room.node)
		}
	}
	i.since = since
	return nodes, wait
}
