package gke

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"persia/gcp"
	"persia/sandbox/gcp/google"
)

const clusterLabel = "sandbox.persia.com/cluster"

// Pool is a node pool, and which nodes it should have.
type Pool struct {
	// path is the pool's name in Google's API, and body the API's answer.
	path string
	body google.Body
	// zones are sorted.
	zones    []string
	template *corev1.Node
}

// NewPool returns a pool. machines has the machine types that the catalogue lacks.
func NewPool(path string, body google.Body, machines Machines) (Pool, error) {
	pool := Pool{path: path, body: body, zones: google.Texts(body, "locations")}
	slices.Sort(pool.zones)
	template, err := pool.nodeTemplate(machines)
	pool.template = template
	return pool, err
}

// Name returns the pool's.
func (p Pool) Name() string { return google.Segment(p.path) }

// Min returns the least number of nodes of an autoscaled pool over all zones.
func (p Pool) Min() int { return google.Number(p.body, "autoscaling.totalMinNodeCount") }

// Max returns the largest number of nodes of an autoscaled pool over all zones.
func (p Pool) Max() int { return google.Number(p.body, "autoscaling.totalMaxNodeCount") }

// Autoscaled reports whether the autoscaler chooses the number of nodes.
func (p Pool) Autoscaled() bool { return len(google.Object(p.body, "autoscaling")) > 0 }

// perZone returns the number of nodes in each zone of a pool that is not autoscaled.
func (p Pool) perZone() int { return google.Number(p.body, "nodeCount") }

// Queued reports whether nodes come for a ProvisioningRequest, and not for pods.
func (p Pool) Queued() bool { return google.Truth(p.body, "queuedProvisioning.enabled") }

// Has reports whether a node is one of the pool's.
func (p Pool) Has(node *corev1.Node) bool {
	return node.Labels[clusterLabel] == google.Element(p.path, "clusters") && node.Labels[gcp.LabelNodePool] == p.Name()
}

// Next returns the nodes that the pool might get in addition, one for each zone. The zone with the
// fewest nodes comes first, which keeps the zones level.
func (p Pool) Next(has []*corev1.Node) []*corev1.Node {
	counts, taken := zoneCounts(has), map[string]bool{}
	for _, node := range has {
		taken[node.Name] = true
	}
	zones := slices.SortedStableFunc(slices.Values(p.zones), func(a, b string) int { return cmp.Compare(counts[a], counts[b]) })
	var next []*corev1.Node
	for _, zone := range zones {
		name := ""
		for index := 0; name == "" || taken[name]; index++ {
			name = fmt.Sprintf("%s%04d", p.namePrefix(zone), index)
		}
		next = append(next, p.node(zone, name))
	}
	return next
}

// Spare returns the idle nodes that the pool does not need.
func (p Pool) Spare(has, idle []*corev1.Node) []*corev1.Node {
	return fromFullest(has, idle, len(has)-p.Min())
}

// fromFullest returns a number of the idle nodes, or all, from the zone with the most nodes first.
func fromFullest(has, idle []*corev1.Node, count int) []*corev1.Node {
	counts, idle := zoneCounts(has), slices.Clone(idle)
	var chosen []*corev1.Node
	for len(idle) > 0 && len(chosen) < count {
		next := slices.MaxFunc(idle, func(a, b *corev1.Node) int {
			return cmp.Or(cmp.Compare(counts[zoneOf(a)], counts[zoneOf(b)]), cmp.Compare(a.Name, b.Name))
		})
		chosen = append(chosen, next)
		counts[zoneOf(next)]--
		idle = slices.DeleteFunc(idle, func(node *corev1.Node) bool { return node == next })
	}
	return chosen
}

func zoneCounts(nodes []*corev1.Node) map[string]int {
	counts := map[string]int{}
	for _, node := range nodes {
		counts[zoneOf(node)]++
	}
	return counts
}

func zoneOf(node *corev1.Node) string { return node.Labels[corev1.LabelTopologyZone] }

// wanted returns the nodes that the pool should have, by name: a fixed number in each zone, or as many as exist within
// the bounds of autoscaling. Nodes that are of its shape stay, as far as they are not too many.
func (p Pool) wanted(existing map[string]corev1.Node) map[string]*corev1.Node {
	if p.Autoscaled() {
		return p.level(existing, max(p.Min(), min(p.Max(), len(existing))))
	}
	wanted := map[string]*corev1.Node{}
	for _, zone := range p.zones {
		inZone := p
		inZone.zones = []string{zone}
		maps.Copy(wanted, inZone.level(existing, p.perZone()))
	}
	return wanted
}

// level returns a number of nodes, spread over the zones.
func (p Pool) level(existing map[string]corev1.Node, count int) map[string]*corev1.Node {
	var nodes []*corev1.Node
	for name := range existing {
		if zone := p.zoneOfName(name); zone != "" {
			nodes = append(nodes, p.node(zone, name))
		}
	}
	for len(nodes) < count {
		nodes = append(nodes, p.Next(nodes)[0])
	}
	surplus := fromFullest(nodes, nodes, len(nodes)-count)
	wanted := map[string]*corev1.Node{}
	for _, node := range nodes {
		if !slices.Contains(surplus, node) {
			wanted[node.Name] = node
		}
	}
	return wanted
}

// node returns a node of the pool.
func (p Pool) node(zone, name string) *corev1.Node {
	node := p.template.DeepCopy()
	node.Name = name
	maps.Copy(node.Labels, map[string]string{
		corev1.LabelHostname:     name,
		corev1.LabelTopologyZone: zone,
		gcp.LabelZone:            zone,
	})
	return node
}

// zoneOfName returns the zone of a node of this pool's shape by the node's name, or "".
func (p Pool) zoneOfName(name string) string {
	for _, zone := range p.zones {
		if strings.HasPrefix(name, p.namePrefix(zone)) {
			return zone
		}
	}
	return ""
}

// namePrefix is like the names of GKE's nodes, with a hash in it of all that makes another machine: a changed machine
// type makes other nodes, a changed label does not. The index of the node follows.
func (p Pool) namePrefix(zone string) string {
	machine := maps.Clone(google.Object(p.body, "config"))
	for _, inPlace := range []string{"labels", "resourceLabels", "tags", "taints", "gpuTaints"} {
		delete(machine, inPlace)
	}
	hash := fnv.New32a()
	// Maps print in the order of their keys.
	fmt.Fprint(hash, p.path, zone, machine)
	suffix := fmt.Sprintf("-%08x-", hash.Sum32())
	// The name is the value of a label, too.
	const indexLength = 4
	prefix := "gke-" + google.Element(p.path, "clusters") + "-" + p.Name()
	return prefix[:min(len(prefix), validation.LabelValueMaxLength-indexLength-len(suffix))] + suffix
}
