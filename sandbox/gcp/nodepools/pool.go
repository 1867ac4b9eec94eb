package nodepools

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"persia/gcp"
	"persia/sandbox/gcp/property"
)

const (
	clusterLabel = "sandbox.persia.com/cluster"
	// nodeRequests bounds the requests under way at once.
	nodeRequests = 16
)

// Nodes are the nodes of all node pools, in one control plane.
type Nodes struct {
	// Client returns a client of the control plane.
	Client   func() (kubernetes.Interface, error)
	Machines Machines
	// Real is the node pool whose node is a real one, or "".
	Real string
	// Quotas limit the nodes that creation and upgrades add. The autoscaler and node repair ignore them.
	Quotas Quotas
}

// nodePool describes the nodes of a pool, from the pool's inputs.
type nodePool struct {
	inputs resource.PropertyMap
	// zones are sorted.
	zones    []string
	template *corev1.Node
	quotas   Quotas
}

func newNodePool(inputs resource.PropertyMap, machines Machines) (nodePool, error) {
	template, err := nodeTemplate(inputs, machines)
	if err != nil {
		return nodePool{}, err
	}
	zones := property.Texts(inputs, "nodeLocations")
	if len(zones) == 0 {
		return nodePool{}, fmt.Errorf("nodeLocations is empty: the sandbox does not know the zones of %s", property.Text(inputs, "location"))
	}
	slices.Sort(zones)
	return nodePool{inputs: inputs, zones: zones, template: template}, nil
}

// Apply relabels and taints the nodes that stay, creates those that are missing, and
// then removes those that are too many. A change that needs other machines goes
// through other nodes, in the rounds of GKE's upgrades: pods move because their node
// is gone.
//
// The autoscaler is told first. It may be at work on the pool meanwhile: a node
// may be there already, or be gone already.
func (g *Nodes) Apply(ctx context.Context, inputs resource.PropertyMap, progress func(string)) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	pool, err := newNodePool(inputs, g.Machines)
	if err != nil {
		return err
	}
	pool.quotas = g.Quotas
	if g.isReal(inputs) {
		// Its machine is the sandbox's.
		if err = pool.makeReal(); err == nil {
			err = retract(ctx, client, inputs)
		}
	} else {
		err = announce(ctx, client, inputs, g.Machines)
	}
	if err != nil {
		return err
	}
	existing, err := listNodes(ctx, client, inputs)
	if err != nil {
		return err
	}
	wanted := pool.wanted(existing)
	progress(fmt.Sprintf("%d nodes", len(wanted)))
	if err := pool.apply(ctx, client, wanted, existing); err != nil || !g.isReal(inputs) {
		return err
	}
	return awaitReal(ctx, client, inputs, progress)
}

// apply creates, updates and deletes nodes until the existing ones are the wanted ones.
func (p nodePool) apply(ctx context.Context, client kubernetes.Interface, wanted map[string]*corev1.Node, existing map[string]corev1.Node) error {
	missing := map[string]*corev1.Node{}
	// The group's context ends with the group.
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(nodeRequests)
	for name, node := range wanted {
		old, exists := existing[name]
		switch {
		case !exists:
			missing[name] = node
		case !sameNode(old, node):
			group.Go(func() error { return utilerrors.FilterOut(updateNode(groupCtx, client, node), apierrors.IsNotFound) })
		}
		delete(existing, name)
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := p.replace(ctx, client, missing, existing); err != nil {
		return err
	}
	if err := p.createNodes(ctx, client, missing); err != nil {
		return err
	}
	return deleteNodes(ctx, client, existing)
}

// Count returns how many nodes of a pool there are in each zone. Uneven zones count as
// fewer, and the next update fills them up.
func (g *Nodes) Count(ctx context.Context, inputs resource.PropertyMap) (float64, error) {
	client, err := g.Client()
	if err != nil {
		return 0, err
	}
	existing, err := listNodes(ctx, client, inputs)
	return float64(len(existing) / max(1, len(property.Texts(inputs, "nodeLocations")))), err
}

// Remove removes the nodes of a pool.
func (g *Nodes) Remove(ctx context.Context, state resource.PropertyMap) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	if err := retract(ctx, client, state); err != nil {
		return err
	}
	existing, err := listNodes(ctx, client, state)
	if err != nil {
		return err
	}
	return deleteNodes(ctx, client, existing)
}

// listNodes returns the existing nodes of a pool by name.
func listNodes(ctx context.Context, client kubernetes.Interface, inputs resource.PropertyMap) (map[string]corev1.Node, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{
		LabelSelector: fmt.Sprintf("%s=%s,%s=%s", clusterLabel, property.Text(inputs, "cluster"), gcp.LabelNodePool, property.Text(inputs, "name")),
	})
	if err != nil {
		return nil, err
	}
	nodes := map[string]corev1.Node{}
	for _, node := range list.Items {
		nodes[node.Name] = node
	}
	return nodes, nil
}

func deleteNodes(ctx context.Context, client kubernetes.Interface, nodes map[string]corev1.Node) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(nodeRequests)
	for name := range nodes {
		group.Go(func() error {
			err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
			if err := utilerrors.FilterOut(err, apierrors.IsNotFound); err != nil {
				return err
			}
			return deletePods(ctx, client, name)
		})
	}
	return group.Wait()
}

// deletePods deletes the pods of a node that is gone. Kubernetes does so too,
// but only after a minute.
func deletePods(ctx context.Context, client kubernetes.Interface, node string) error {
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=" + node,
	})
	if err != nil {
		return err
	}
	atOnce := int64(0)
	for _, pod := range pods.Items {
		err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &atOnce})
		if err := utilerrors.FilterOut(err, apierrors.IsNotFound); err != nil {
			return err
		}
	}
	return nil
}

// updateNode gives a node other labels and taints. It reads the node first and may
// find it changed by then, since what plays the kubelet updates it all the while.
func updateNode(ctx context.Context, client kubernetes.Interface, wanted *corev1.Node) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := client.CoreV1().Nodes().Get(ctx, wanted.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Labels = wanted.Labels
		troubles, _ := splitTaints(node.Spec.Taints)
		node.Spec.Taints = append(troubles, wanted.Spec.Taints...)
		_, err = client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
}

// sameNode reports whether a node has the labels and taints that are wanted. What
// else there is of a node decides its name.
func sameNode(node corev1.Node, wanted *corev1.Node) bool {
	_, own := splitTaints(node.Spec.Taints)
	return maps.Equal(node.Labels, wanted.Labels) && equality.Semantic.DeepEqual(own, wanted.Spec.Taints)
}

// splitTaints separates the taints that Kubernetes gives to nodes in trouble from the pool's own.
func splitTaints(taints []corev1.Taint) (troubles, own []corev1.Taint) {
	for _, taint := range taints {
		if strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			troubles = append(troubles, taint)
		} else {
			own = append(own, taint)
		}
	}
	return troubles, own
}

// wanted returns the nodes that the pool should have, by name. Those that are of its
// shape stay, as far as they are not too many.
func (p nodePool) wanted(existing map[string]corev1.Node) map[string]*corev1.Node {
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
func (p nodePool) counts(kept map[string][]int, existing int) map[string]int {
	counts := map[string]int{}
	if perZone, fixed := property.Number(p.inputs, "nodeCount"); fixed {
		for _, zone := range p.zones {
			counts[zone] = perZone
		}
		return counts
	}
	have := 0
	for _, zone := range p.zones {
		counts[zone] = len(kept[zone])
		have += counts[zone]
	}
	least, most := p.bounds()
	want := max(least, min(most, existing))
	for ; have < want; have++ {
		counts[p.byCount(counts)[0]]++
	}
	for ; have > want; have-- {
		counts[p.byCount(counts)[len(p.zones)-1]]--
	}
	return counts
}

// bounds returns the least and the most nodes of an autoscaled pool, over all zones.
func (p nodePool) bounds() (least, most int) {
	least, _ = property.Number(property.Object(p.inputs, "autoscaling"), "totalMinNodeCount")
	most, _ = property.Number(property.Object(p.inputs, "autoscaling"), "totalMaxNodeCount")
	return least, most
}

// byCount returns the zones, the one with the fewest nodes first.
func (p nodePool) byCount(counts map[string]int) []string {
	return slices.SortedStableFunc(slices.Values(p.zones), func(a, b string) int {
		return cmp.Compare(counts[a], counts[b])
	})
}

// node returns a node of the pool. Nodes of a zone are counted from 0.
func (p nodePool) node(zone string, index int) *corev1.Node {
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
func (p nodePool) indices(names iter.Seq[string]) map[string][]int {
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
func (p nodePool) namePrefix(zone string) string {
	machine := property.Object(p.inputs, "nodeConfig").Copy()
	for _, inPlace := range []resource.PropertyKey{"labels", "resourceLabels", "tags", "taints", "effectiveTaints"} {
		delete(machine, inPlace)
	}
	hash := fnv.New32a()
	// Maps print in the order of their keys.
	fmt.Fprint(hash, property.Expand("projects/${project}/locations/${location}/clusters/${cluster}/nodePools/${name}", p.inputs), zone, machine.Mappable())
	suffix := fmt.Sprintf("-%08x-", hash.Sum32())
	// The name is the value of a label, too.
	const indexLength = 4
	prefix := property.Expand("gke-${cluster}-${name}", p.inputs)
	return prefix[:min(len(prefix), validation.LabelValueMaxLength-indexLength-len(suffix))] + suffix
}
