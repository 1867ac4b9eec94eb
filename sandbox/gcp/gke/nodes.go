package gke

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"persia/config/input"
	"persia/gcp"
	"persia/sandbox/gcp/google"
)

// nodeRequests bounds the requests under way at once.
const nodeRequests = 16

// ApplyPool relabels and taints the nodes of a pool that stay, creates those that are missing, and then removes those
// that are too many. A change that needs other machines goes through other nodes, in the rounds of GKE's upgrades: pods
// move because their node is gone.
//
// The autoscaler may be at work on the pool meanwhile: a node may be there already, or be gone already.
func (e Engine) ApplyPool(ctx context.Context, path string, body google.Body, progress func(string)) error {
	pool, err := NewPool(path, body, e.Machines)
	if err != nil {
		return err
	}
	isReal := pool.Name() == e.Real
	if isReal {
		if err := pool.makeReal(); err != nil {
			return err
		}
	}
	existing, err := listNodes(ctx, e.Client, path)
	if err != nil {
		return err
	}
	wanted := pool.wanted(existing)
	progress(input.Count(len(wanted), "node"))
	if err := apply(ctx, e.Client, pool, wanted, existing); err != nil || !isReal {
		return err
	}
	return awaitReal(ctx, e.Client, path, progress)
}

// apply creates, updates and deletes nodes until the existing ones are the wanted ones. Nodes of another shape in
// the zones of the pool are replaced in rounds, as GKE does: it takes away maxSurge + maxUnavailable at a time,
// and adds maxSurge before.
func apply(ctx context.Context, client kubernetes.Interface, pool Pool, wanted map[string]*corev1.Node,
	existing map[string]corev1.Node) error {
	var missing, changed []*corev1.Node
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if old, exists := existing[name]; !exists {
			missing = append(missing, wanted[name])
		} else if !sameNode(old, wanted[name]) {
			changed = append(changed, wanted[name])
		}
	}
	var stale, tooMany []string
	for _, name := range slices.Sorted(maps.Keys(existing)) {
		node := existing[name]
		switch {
		case wanted[name] != nil:
		case pool.zoneOfName(name) == "" && slices.Contains(pool.zones, zoneOf(&node)):
			stale = append(stale, name)
		default:
			tooMany = append(tooMany, name)
		}
	}
	err := each(ctx, changed, func(ctx context.Context, node *corev1.Node) error {
		return utilerrors.FilterOut(updateNode(ctx, client, node), apierrors.IsNotFound)
	})
	surge := google.Number(pool.body, "upgradeSettings.maxSurge")
	atOnce := max(1, surge+google.Number(pool.body, "upgradeSettings.maxUnavailable"))
	for err == nil && len(stale) > 0 && len(missing) > 0 {
		count := min(atOnce, len(stale), len(missing))
		before := min(surge, count)
		if _, err = createNodes(ctx, client, missing[:before]); err == nil {
			err = deleteNodes(ctx, client, stale[:count])
		}
		if err == nil {
			_, err = createNodes(ctx, client, missing[before:count])
		}
		stale, missing = stale[count:], missing[count:]
	}
	if err == nil {
		_, err = createNodes(ctx, client, missing)
	}
	if err == nil {
		err = deleteNodes(ctx, client, append(tooMany, stale...))
	}
	return err
}

// CountPool returns how many nodes of a pool there are in each zone. Uneven zones count as
// fewer, and the next update fills them up.
func (e Engine) CountPool(ctx context.Context, path string, body google.Body) (float64, error) {
	existing, err := listNodes(ctx, e.Client, path)
	return float64(len(existing) / max(1, len(google.Texts(body, "locations")))), err
}

// RemovePool removes the nodes of a pool.
func (e Engine) RemovePool(ctx context.Context, path string) error {
	existing, err := listNodes(ctx, e.Client, path)
	if err != nil {
		return err
	}
	return deleteNodes(ctx, e.Client, slices.Collect(maps.Keys(existing)))
}

// each calls a function for each item, several at once.
func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(nodeRequests)
	for _, item := range items {
		group.Go(func() error { return do(ctx, item) })
	}
	return group.Wait()
}

// Add creates nodes of a pool, and returns how many it created. It skips nodes that exist. If a command
// has begun to change the pool meanwhile, it may not have seen the nodes, so Add takes them back.
func (e Engine) Add(ctx context.Context, pool Pool, nodes []*corev1.Node) (int, error) {
	created, err := createNodes(ctx, e.Client, nodes)
	now, unread := e.Cloud.Get(google.NodePool, pool.path)
	if unread == nil && !reflect.DeepEqual(now, pool.body) {
		return 0, errors.Join(err, deleteNodes(ctx, e.Client, created))
	}
	return len(created), errors.Join(err, unread)
}

// listNodes returns the existing nodes of a pool by name.
func listNodes(ctx context.Context, client kubernetes.Interface, path string) (map[string]corev1.Node, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{
		LabelSelector: fmt.Sprintf("%s=%s,%s=%s", clusterLabel, google.Element(path, "clusters"), gcp.LabelNodePool, google.Segment(path)),
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

// createNodes creates nodes, and returns the names of those that it created. It skips nodes that exist.
func createNodes(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) (created []string, err error) {
	var lock sync.Mutex
	err = each(ctx, nodes, func(ctx context.Context, node *corev1.Node) error {
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		lock.Lock()
		defer lock.Unlock()
		if err == nil {
			created = append(created, node.Name)
		}
		return utilerrors.FilterOut(err, apierrors.IsAlreadyExists)
	})
	return created, err
}

func deleteNodes(ctx context.Context, client kubernetes.Interface, names []string) error {
	return each(ctx, names, func(ctx context.Context, name string) error {
		err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
		if err := utilerrors.FilterOut(err, apierrors.IsNotFound); err != nil {
			return err
		}
		return deletePods(ctx, client, name)
	})
}

// deletePods deletes the pods of a node that is gone. Kubernetes does so too, but only after a minute.
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

// repairDelay is the time between two looks for lost nodes. GKE takes minutes.
const repairDelay = time.Second

// Repair replaces lost nodes of pools with a fixed number of nodes, until ctx ends, as Google's
// managed instance groups do. The new machine has the name of the lost one, and none of its pods.
func (e Engine) Repair(ctx context.Context, logger *slog.Logger) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		pools, err := e.Pools()
		for _, pool := range pools {
			if !pool.Autoscaled() {
				err = errors.Join(err, e.repair(ctx, pool, logger))
			}
		}
		if err != nil && ctx.Err() == nil {
			logger.Error("repair of node pools: trying again", "error", err)
		}
	}, repairDelay)
	return nil
}

// repair gives a pool the nodes that it lacks now.
func (e Engine) repair(ctx context.Context, pool Pool, logger *slog.Logger) error {
	existing, err := listNodes(ctx, e.Client, pool.path)
	if err != nil {
		return err
	}
	var missing []*corev1.Node
	for name, node := range pool.wanted(existing) {
		if _, exists := existing[name]; exists {
			continue
		}
		if err := deletePods(ctx, e.Client, name); err != nil {
			return err
		}
		missing = append(missing, node)
	}
	added, err := e.Add(ctx, pool, missing)
	if added > 0 {
		logger.Info("nodes repaired", "pool", pool.Name(), "nodes", added)
	}
	return err
}
