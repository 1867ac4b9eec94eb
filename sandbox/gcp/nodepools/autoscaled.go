package nodepools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"

	"persia/gcp"
	"persia/sandbox/gcp/property"
)

// AutoscaledLabel is a label of the ConfigMaps in kube-system that describe the autoscaled pools.
// The provider ends with its command, and the autoscaler keeps running: both find the pools there.
const AutoscaledLabel = "sandbox.persia.com/autoscaled"

// The keys of a pool's inputs, and of machine types that the catalogue lacks, as
// JSON, in its ConfigMap.
const (
	inputsKey   = "inputs"
	machinesKey = "machines"
)

// Pool is a node pool as its ConfigMap describes it to the autoscaler, which chooses its
// number of nodes, or to the repair of pools of a fixed size.
type Pool struct {
	nodePool
	announcement *corev1.ConfigMap
}

// FromConfigMap reads a pool.
func FromConfigMap(announcement *corev1.ConfigMap) (Pool, error) {
	var inputs map[string]any
	if err := json.Unmarshal([]byte(announcement.Data[inputsKey]), &inputs); err != nil {
		return Pool{}, fmt.Errorf("ConfigMap %s: %w", announcement.Name, err)
	}
	var machines Machines
	if err := json.Unmarshal([]byte(announcement.Data[machinesKey]), &machines); err != nil {
		return Pool{}, fmt.Errorf("ConfigMap %s: %w", announcement.Name, err)
	}
	pool, err := newNodePool(resource.NewPropertyMapFromMap(inputs), machines)
	if err != nil {
		return Pool{}, fmt.Errorf("ConfigMap %s: %w", announcement.Name, err)
	}
	return Pool{nodePool: pool, announcement: announcement}, nil
}

// Name returns the pool's.
func (p Pool) Name() string { return property.Text(p.inputs, "name") }

// Min returns the least number of nodes over all zones.
func (p Pool) Min() int {
	least, _ := p.bounds()
	return least
}

// Max returns the largest number of nodes over all zones.
func (p Pool) Max() int {
	_, most := p.bounds()
	return most
}

// Queued reports whether nodes come for a ProvisioningRequest, and not for pods.
func (p Pool) Queued() bool { return queued(p.inputs) }

// Has reports whether a node is one of the pool's.
func (p Pool) Has(node *corev1.Node) bool {
	return node.Labels[clusterLabel] == property.Text(p.inputs, "cluster") && node.Labels[gcp.LabelNodePool] == p.Name()
}

// Next returns the nodes that the pool might get in addition, one for each zone. The zone with the
// fewest nodes comes first, which keeps the zones level.
func (p Pool) Next(has []*corev1.Node) []*corev1.Node {
	var names []string
	for _, node := range has {
		names = append(names, node.Name)
	}
	taken, counts := p.indices(slices.Values(names)), zoneCounts(has)
	var next []*corev1.Node
	for _, zone := range p.byCount(counts) {
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

// Current reports whether the pool is still there and as it was read.
func (p Pool) Current(ctx context.Context, client kubernetes.Interface) (bool, error) {
	now, err := client.CoreV1().ConfigMaps(p.announcement.Namespace).Get(ctx, p.announcement.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && now.UID == p.announcement.UID && now.ResourceVersion == p.announcement.ResourceVersion &&
		maps.Equal(now.Labels, p.announcement.Labels), err
}

// Announcement returns the ConfigMap of a pool.
func Announcement(inputs resource.PropertyMap, machines Machines) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(inputs.Mappable())
	if err != nil {
		return nil, err
	}
	shapes, err := json.Marshal(machines)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem,
			Name:      announcementName(inputs),
			Labels:    map[string]string{AutoscaledLabel: "true"},
		},
		Data: map[string]string{inputsKey: string(text), machinesKey: string(shapes)},
	}, nil
}

// announcementName joins names that have no dot in them.
func announcementName(inputs resource.PropertyMap) string {
	return property.Expand("node-pool.${cluster}.${name}", inputs)
}

// announce describes a pool to the autoscaler, or to the repair of fixed pools.
func announce(ctx context.Context, client kubernetes.Interface, inputs resource.PropertyMap, machines Machines) error {
	announcement, err := Announcement(inputs, machines)
	if err != nil {
		return err
	}
	if len(property.Object(inputs, "autoscaling")) == 0 {
		announcement.Labels = map[string]string{FixedLabel: "true"}
	}
	configMaps := client.CoreV1().ConfigMaps(announcement.Namespace)
	_, err = configMaps.Update(ctx, announcement, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(ctx, announcement, metav1.CreateOptions{})
	}
	return err
}

// retract ends the announcement of a pool.
func retract(ctx context.Context, client kubernetes.Interface, inputs resource.PropertyMap) error {
	err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Delete(ctx, announcementName(inputs), metav1.DeleteOptions{})
	return utilerrors.FilterOut(err, apierrors.IsNotFound)
}
