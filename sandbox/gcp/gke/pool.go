package gke

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"persia/gcp"
	"persia/sandbox/gcp/google"
)

// The labels of the ConfigMaps in kube-system that describe node pools. The provider ends with its
// command, and the agent keeps running: the autoscaler and the repair find the pools there.
const (
	// AutoscaledLabel is on autoscaled pools, and FixedLabel on pools with a fixed number of nodes.
	AutoscaledLabel = "sandbox.persia.com/autoscaled"
	FixedLabel      = "sandbox.persia.com/fixed"

	clusterLabel = "sandbox.persia.com/cluster"
)

// Pool is a node pool, and which nodes it should have.
type Pool struct {
	// path is the pool's name in Google's API, and body the API's answer.
	path string
	body google.Body
	// zones are sorted.
	zones    []string
	template *corev1.Node
	// announcement is the ConfigMap that the pool is read from, or nil.
	announcement *corev1.ConfigMap
}

func newPool(path string, body google.Body, machines Machines) (Pool, error) {
	pool := Pool{path: path, body: body, zones: google.Texts(body, "locations")}
	slices.Sort(pool.zones)
	template, err := pool.nodeTemplate(machines)
	pool.template = template
	return pool, err
}

// The keys of a ConfigMap that describes a pool: its path, its body, and the machine types that the
// catalogue lacks, both as JSON.
const (
	pathKey     = "path"
	bodyKey     = "body"
	machinesKey = "machines"
)

// FromConfigMap reads a pool.
func FromConfigMap(announcement *corev1.ConfigMap) (Pool, error) {
	var body google.Body
	var machines Machines
	err := json.Unmarshal([]byte(announcement.Data[bodyKey]), &body)
	if err == nil {
		err = json.Unmarshal([]byte(announcement.Data[machinesKey]), &machines)
	}
	var pool Pool
	if err == nil {
		pool, err = newPool(announcement.Data[pathKey], body, machines)
	}
	if err != nil {
		return Pool{}, fmt.Errorf("ConfigMap %s: %w", announcement.Name, err)
	}
	pool.announcement = announcement
	return pool, nil
}

// Announcement returns the ConfigMap that describes a pool, given its path and body.
func Announcement(path string, body google.Body, machines Machines) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	shapes, err := json.Marshal(machines)
	if err != nil {
		return nil, err
	}
	label := AutoscaledLabel
	if len(google.Object(body, "autoscaling")) == 0 {
		label = FixedLabel
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem,
			Name:      announcementName(path),
			Labels:    map[string]string{label: "true"},
		},
		Data: map[string]string{pathKey: path, bodyKey: string(text), machinesKey: string(shapes)},
	}, nil
}

// announcementName joins names that have no dot in them.
func announcementName(path string) string {
	return "node-pool." + google.Element(path, "clusters") + "." + google.Segment(path)
}

// Name returns the pool's.
func (p Pool) Name() string { return google.Segment(p.path) }

// Min returns the least number of nodes of an autoscaled pool over all zones.
func (p Pool) Min() int { return google.Number(p.body, "autoscaling.totalMinNodeCount") }

// Max returns the largest number of nodes of an autoscaled pool over all zones.
func (p Pool) Max() int { return google.Number(p.body, "autoscaling.totalMaxNodeCount") }

// fixed reports whether the pool is not autoscaled, and its number of nodes in each zone.
func (p Pool) fixed() (perZone int, fixed bool) {
	return google.Number(p.body, "nodeCount"), len(google.Object(p.body, "autoscaling")) == 0
}

// Queued reports whether nodes come for a ProvisioningRequest, and not for pods.
func (p Pool) Queued() bool { return google.Truth(p.body, "queuedProvisioning.enabled") }

// Has reports whether a node is one of the pool's.
func (p Pool) Has(node *corev1.Node) bool {
	return node.Labels[clusterLabel] == google.Element(p.path, "clusters") && node.Labels[gcp.LabelNodePool] == p.Name()
}

// Next returns the nodes that the pool might get in addition, one for each zone. The zone with the
// fewest nodes comes first, which keeps the zones level.
func (p Pool) Next(has []*corev1.Node) []*corev1.Node {
	var names []string
	for _, node := range has {
		names = append(names, node.Name)
	}
	taken := p.indices(slices.Values(names))
	var next []*corev1.Node
	for _, zone := range p.byCount(zoneCounts(has)) {
		indices := lowest(taken[zone], len(taken[zone])+1)
		next = append(next, p.node(zone, indices[len(indices)-1]))
	}
	return next
}

// Spare returns the idle nodes that the pool does not need, from the zone with the most nodes
// first.
func (p Pool) Spare(has, idle []*corev1.Node) []*corev1.Node {
	counts, idle := zoneCounts(has), slices.Clone(idle)
	var spare []*corev1.Node
	for len(idle) > 0 && len(has)-len(spare) > p.Min() {
		next := slices.MaxFunc(idle, func(a, b *corev1.Node) int {
			return cmp.Or(cmp.Compare(counts[zoneOf(a)], counts[zoneOf(b)]), cmp.Compare(a.Name, b.Name))
		})
		spare = append(spare, next)
		counts[zoneOf(next)]--
		idle = slices.DeleteFunc(idle, func(node *corev1.Node) bool { return node == next })
	}
	return spare
}

func zoneCounts(nodes []*corev1.Node) map[string]int {
	counts := map[string]int{}
	for _, node := range nodes {
		counts[zoneOf(node)]++
	}
	return counts
}

func zoneOf(node *corev1.Node) string { return node.Labels[corev1.LabelTopologyZone] }

// wanted returns the nodes that the pool should have, by name. Those that are of its
// shape stay, as far as they are not too many.
func (p Pool) wanted(existing map[string]corev1.Node) map[string]*corev1.Node {
	kept := p.indices(maps.Keys(existing))
	nodes := map[string]*corev1.Node{}
	for zone, count := range p.counts(kept, len(existing)) {
		for _, index := range lowest(kept[zone], count) {
			node := p.node(zone, index)
			nodes[node.Name] = node
		}
	}
	return nodes
}

// counts returns the number of nodes for each zone: for a fixed count the same in each, and for an
// autoscaled pool the current one, within the pool's bounds.
func (p Pool) counts(kept map[string][]int, existing int) map[string]int {
	counts := map[string]int{}
	perZone, fixed := p.fixed()
	have := 0
	for _, zone := range p.zones {
		counts[zone] = len(kept[zone])
		if fixed {
			counts[zone] = perZone
		}
		have += counts[zone]
	}
	if fixed {
		return counts
	}
	want := max(p.Min(), min(p.Max(), existing))
	for ; have < want; have++ {
		counts[p.byCount(counts)[0]]++
	}
	for ; have > want; have-- {
		counts[p.byCount(counts)[len(p.zones)-1]]--
	}
	return counts
}

// byCount returns the zones, the one with the fewest nodes first.
func (p Pool) byCount(counts map[string]int) []string {
	return slices.SortedStableFunc(slices.Values(p.zones), func(a, b string) int {
		return cmp.Compare(counts[a], counts[b])
	})
}

// node returns a node of the pool. Nodes of a zone are counted from 0.
func (p Pool) node(zone string, index int) *corev1.Node {
	node := p.template.DeepCopy()
	node.Name = fmt.Sprintf("%s%04d", p.namePrefix(zone), index)
	maps.Copy(node.Labels, map[string]string{
		corev1.LabelHostname:     node.Name,
		corev1.LabelTopologyZone: zone,
		gcp.LabelZone:            zone,
	})
	return node
}

// indices returns, by zone, the ascending indices of the nodes whose names have this pool's
// shape. It skips other names.
func (p Pool) indices(names iter.Seq[string]) map[string][]int {
	zones := map[string]string{}
	for _, zone := range p.zones {
		zones[p.namePrefix(zone)] = zone
	}
	indices := map[string][]int{}
	for _, name := range slices.Sorted(names) {
		end := strings.LastIndex(name, "-") + 1
		index, err := strconv.Atoi(name[end:])
		if zone, own := zones[name[:end]]; own && err == nil {
			indices[zone] = append(indices[zone], index)
		}
	}
	return indices
}

// lowest returns the first count of the indices that are taken, and where these are
// fewer, the lowest free ones.
func lowest(taken []int, count int) []int {
	chosen := slices.Clone(taken[:min(count, len(taken))])
	for index := 0; len(chosen) < count; index++ {
		if !slices.Contains(taken, index) {
			chosen = append(chosen, index)
		}
	}
	return chosen
}

// namePrefix is like the names of GKE's nodes, with a hash in it of all that makes
// another machine: a changed machine type makes other nodes, a changed label does
// not. The index of the node follows.
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
