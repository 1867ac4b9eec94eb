package gcp

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

const (
	poolLabel    = "cloud.google.com/gke-nodepool"
	clusterLabel = "sandbox.persia.com/cluster"
	// nodeRequests bounds the requests under way at once.
	nodeRequests = 16
)

// applyNodePool creates the nodes that are missing, relabels and taints those
// that stay, and then removes those that are too many. A change that needs other
// machines goes through other nodes, the new ones first, as in GKE's surge
// upgrades: pods move because their node is gone.
func (g gke) applyNodePool(ctx context.Context, inputs resource.PropertyMap, progress func(string)) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	wanted, err := poolNodes(inputs)
	if err != nil {
		return err
	}
	existing, err := listNodes(ctx, client, inputs)
	if err != nil {
		return err
	}
	progress(fmt.Sprintf("%d nodes", len(wanted)))

	// The group's context ends with the group.
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(nodeRequests)
	for name, node := range wanted {
		old, exists := existing[name]
		switch {
		case !exists:
			group.Go(func() error {
				_, err := client.CoreV1().Nodes().Create(groupCtx, node, metav1.CreateOptions{})
				return err
			})
		case !sameNode(old, node):
			group.Go(func() error { return updateNode(groupCtx, client, node) })
		}
		delete(existing, name)
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return deleteNodes(ctx, client, existing)
}

// readNodePool counts the nodes that there are. A pool without nodes is still a
// pool. What an autoscaled pool has is not the program's to say.
func (g gke) readNodePool(ctx context.Context, inputs resource.PropertyMap) (resource.PropertyMap, error) {
	client, err := g.client()
	if err != nil {
		return nil, err
	}
	existing, err := listNodes(ctx, client, inputs)
	if err != nil {
		return nil, err
	}
	actual := inputs.Copy()
	if _, fixed := number(inputs, "nodeCount"); fixed {
		// One number stands for all zones: uneven ones read as fewer nodes, and
		// the next update fills them up.
		zones := max(1, len(texts(inputs, "nodeLocations")))
		actual["nodeCount"] = resource.NewNumberProperty(float64(len(existing) / zones))
	}
	return actual, nil
}

func (g gke) removeNodePool(ctx context.Context, state resource.PropertyMap) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	existing, err := listNodes(ctx, client, state)
	if err != nil {
		return err
	}
	return deleteNodes(ctx, client, existing)
}

// listNodes are the nodes of a pool that there are, by name.
func listNodes(ctx context.Context, client kubernetes.Interface, inputs resource.PropertyMap) (map[string]corev1.Node, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{
		LabelSelector: fmt.Sprintf("%s=%s,%s=%s", clusterLabel, text(inputs, "cluster"), poolLabel, text(inputs, "name")),
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
			return except(err, apierrors.IsNotFound)
		})
	}
	return group.Wait()
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

// splitTaints tells the taints that Kubernetes gives to nodes in trouble from the
// pool's own.
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

// poolNodes are the nodes that a pool should have, by name.
func poolNodes(inputs resource.PropertyMap) (map[string]*corev1.Node, error) {
	template, err := nodeTemplate(inputs)
	if err != nil {
		return nil, err
	}
	zones := texts(inputs, "nodeLocations")
	if len(zones) == 0 {
		return nil, fmt.Errorf("nodeLocations is empty: the sandbox does not know the zones of %s", text(inputs, "location"))
	}
	slices.Sort(zones)
	nodes := map[string]*corev1.Node{}
	for i := range nodeCount(inputs, len(zones)) {
		node := template.DeepCopy()
		zone := zones[i%len(zones)]
		node.Name = nodeName(inputs, zone, i/len(zones))
		maps.Copy(node.Labels, map[string]string{
			corev1.LabelHostname:     node.Name,
			corev1.LabelTopologyZone: zone,
			"topology.gke.io/zone":   zone,
		})
		nodes[node.Name] = node
	}
	return nodes, nil
}

// nodeName is like the names of GKE's nodes, with a hash in it of all that makes
// another machine: a changed machine type makes other nodes, a changed label does
// not.
func nodeName(inputs resource.PropertyMap, zone string, index int) string {
	machine := object(inputs, "nodeConfig").Copy()
	for _, inPlace := range []resource.PropertyKey{"labels", "resourceLabels", "tags", "taints"} {
		delete(machine, inPlace)
	}
	hash := fnv.New32a()
	// Maps print in the order of their keys.
	fmt.Fprint(hash, expand(nodePoolID, inputs), zone, machine.Mappable())
	suffix := fmt.Sprintf("-%08x-%04d", hash.Sum32(), index)
	// The name is the value of a label, too.
	prefix := expand("gke-${cluster}-${name}", inputs)
	return prefix[:min(len(prefix), validation.LabelValueMaxLength-len(suffix))] + suffix
}

// nodeCount is the number of nodes over all zones: a fixed one, or for an
// autoscaled pool the least.
func nodeCount(inputs resource.PropertyMap, zones int) int {
	if perZone, fixed := number(inputs, "nodeCount"); fixed {
		return perZone * zones
	}
	least, _ := number(object(inputs, "autoscaling"), "totalMinNodeCount")
	return least
}
