package gcp

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	poolLabel    = "cloud.google.com/gke-nodepool"
	clusterLabel = "sandbox.persia.com/cluster"
	// nodeRequests bounds the requests under way at once.
	nodeRequests = 16
)

func nodePoolID(inputs resource.PropertyMap) string {
	return fmt.Sprintf("projects/%s/locations/%s/clusters/%s/nodePools/%s",
		text(inputs, "project"), text(inputs, "location"), text(inputs, "cluster"), text(inputs, "name"))
}

// applyNodePool creates the nodes that are missing, removes those too many, and
// makes those anew that differ from what they should be.
func (g gke) applyNodePool(ctx context.Context, req request) (resource.PropertyMap, error) {
	client, err := g.client()
	if err != nil {
		return nil, err
	}
	wanted, err := poolNodes(req.inputs)
	if err != nil {
		return nil, err
	}
	existing, err := listNodes(ctx, client, req.inputs)
	if err != nil {
		return nil, err
	}
	req.status(fmt.Sprintf("%d nodes", len(wanted)))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(nodeRequests)
	for name, node := range wanted {
		old, exists := existing[name]
		if exists && sameNode(old, node) {
			continue
		}
		group.Go(func() error {
			if exists {
				if err := deleteNode(ctx, client, name); err != nil {
					return err
				}
			}
			_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			return err
		})
	}
	for name := range existing {
		if wanted[name] == nil {
			group.Go(func() error { return deleteNode(ctx, client, name) })
		}
	}
	return nil, group.Wait()
}

// readNodePool counts the nodes that there are.
func (g gke) readNodePool(ctx context.Context, req request) (resource.PropertyMap, error) {
	client, err := g.client()
	if err != nil {
		return nil, err
	}
	existing, err := listNodes(ctx, client, req.inputs)
	if err != nil {
		return nil, err
	}
	inputs := req.inputs.Copy()
	if _, fixed := number(inputs, "nodeCount"); fixed {
		zones := max(1, len(texts(inputs, "nodeLocations")))
		inputs["nodeCount"] = resource.NewNumberProperty(float64(len(existing) / zones))
	}
	return inputs, nil
}

func (g gke) removeNodePool(ctx context.Context, req request) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	existing, err := listNodes(ctx, client, req.inputs)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(nodeRequests)
	for name := range existing {
		group.Go(func() error { return deleteNode(ctx, client, name) })
	}
	return group.Wait()
}

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

func deleteNode(ctx context.Context, client kubernetes.Interface, name string) error {
	err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// sameNode reports whether a node is as wanted. Kubernetes adds labels, taints
// and an address range of its own.
func sameNode(node corev1.Node, wanted *corev1.Node) bool {
	for key, value := range wanted.Labels {
		if node.Labels[key] != value {
			return false
		}
	}
	var taints []corev1.Taint
	for _, taint := range node.Spec.Taints {
		if !strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			taints = append(taints, taint)
		}
	}
	return equality.Semantic.DeepEqual(taints, wanted.Spec.Taints) &&
		equality.Semantic.DeepEqual(node.Status.Allocatable, wanted.Status.Allocatable)
}

// poolNodes are the nodes of a pool, by name.
func poolNodes(inputs resource.PropertyMap) (map[string]*corev1.Node, error) {
	template, err := nodeTemplate(inputs)
	if err != nil {
		return nil, err
	}
	zones := texts(inputs, "nodeLocations")
	if len(zones) == 0 {
		return nil, fmt.Errorf("nodeLocations is empty: the sandbox does not know the zones of %s", text(inputs, "location"))
	}
	nodes := map[string]*corev1.Node{}
	for i := range nodeCount(inputs, len(zones)) {
		node := template.DeepCopy()
		zone := zones[i%len(zones)]
		node.Name = fmt.Sprintf("gke-%s-%s-%04d", text(inputs, "cluster"), text(inputs, "name"), i)
		maps.Copy(node.Labels, map[string]string{
			corev1.LabelHostname:     node.Name,
			corev1.LabelTopologyZone: zone,
			"topology.gke.io/zone":   zone,
		})
		nodes[node.Name] = node
	}
	return nodes, nil
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
