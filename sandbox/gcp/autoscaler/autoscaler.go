// Package autoscaler plays GKE's cluster autoscaler. It gives the autoscaled node pools of the simulated Google Cloud
// the nodes that pods wait for, up to each pool's maximum, and removes empty nodes, down to the pool's minimum. It
// moves no pod.
//
// [Run] works in rounds. A round makes one plan: the pods that the scheduler found
// no node for go first onto existing nodes with room, and then onto new nodes. A pod
// thus waits for the node of an earlier round, and does not get another.
//
// Pools with queued provisioning get nodes for ProvisioningRequests of GKE's class, all nodes of
// a request at once, and none for pods. A [Stock] limits what Google Cloud has.
//
// Of what a pod asks of its node, a plan sees the requests, the node selector and required node affinity, the
// tolerations, and required anti-affinity to pods of the same node. It does not see affinity to pods, spread
// constraints, host ports and volumes.
package autoscaler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	requestsv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/client/clientset/versioned/typed/autoscaling.x-k8s.io/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"persia/sandbox/gcp/gke"
)

const (
	// look is the time between two rounds.
	look = time.Second
	// unneeded is how long a node is empty before the autoscaler removes it. GKE waits ten minutes.
	unneeded = 10 * time.Second
)

// Run scales the autoscaled pools of the engine's cluster until ctx ends.
func Run(ctx context.Context, engine gke.Engine, logger *slog.Logger) error {
	requests, err := requestsv1.NewForConfig(engine.Config)
	if err != nil {
		return fmt.Errorf("autoscaler: %w", err)
	}
	classes, err := dynamic.NewForConfig(engine.Config)
	if err != nil {
		return fmt.Errorf("autoscaler: %w", err)
	}
	a := &autoscaler{
		engine:   engine,
		client:   engine.Client,
		requests: requests,
		classes:  classes.Resource(computeClasses),
		events:   newRecorder(ctx, engine.Client),
		logger:   logger,
		empty:    map[types.UID]time.Time{},
		short:    map[string]time.Time{},
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := a.round(ctx); err != nil && ctx.Err() == nil {
			a.logger.Error("autoscaler: trying again", "error", err)
		}
	}, look)
	return nil
}

type autoscaler struct {
	engine   gke.Engine
	client   kubernetes.Interface
	requests requestsv1.AutoscalingV1Interface
	classes  dynamic.ResourceInterface
	events   record.EventRecorder
	logger   *slog.Logger
	// empty is since when nodes have been empty.
	empty map[types.UID]time.Time
	// short is since when pools have got no machines.
	short map[string]time.Time
}

// round adds and removes nodes once.
func (a *autoscaler) round(ctx context.Context) error {
	snapshot, err := a.observe(ctx)
	if err != nil || len(snapshot.pools) == 0 {
		return err
	}
	now := time.Now()
	maps.DeleteFunc(a.short, func(_ string, since time.Time) bool { return now.Sub(since) > backOff })
	snapshot.short = a.short
	plan := newPlan(snapshot)
	booked, err := a.answerRequests(ctx, plan, now)
	errs := []error{err}
	a.tell(plan.failed)
	for _, failed := range plan.failed {
		a.short[failed.pool.Name()] = now
	}
	due := a.due(plan.rooms, booked, now)
	for _, pool := range plan.pools {
		errs = append(errs, a.grow(ctx, pool, plan.nodesOf(pool, true)))
		idle := slices.DeleteFunc(slices.Clone(due), func(node *corev1.Node) bool { return !pool.Has(node) })
		for _, node := range pool.Spare(plan.nodesOf(pool, false), idle) {
			errs = append(errs, a.remove(ctx, pool, node))
		}
	}
	return errors.Join(errs...)
}

// observe reads the cluster. It reads the pools first: a pool that has changed since then gets no nodes.
func (a *autoscaler) observe(ctx context.Context) (snapshot, error) {
	var s snapshot
	all := metav1.ListOptions{}
	pools, err := a.engine.Pools()
	s.pools = slices.DeleteFunc(pools, func(pool gke.Pool) bool { return !pool.Autoscaled() })
	if err != nil || len(s.pools) == 0 {
		return s, err
	}
	stocks, stocksErr := a.readStock(ctx)
	nodes, nodesErr := a.client.CoreV1().Nodes().List(ctx, all)
	pods, podsErr := a.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, all)
	daemonSets, setsErr := a.client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, all)
	classes, classesErr := a.readClasses(ctx)
	if err := errors.Join(stocksErr, nodesErr, podsErr, setsErr, classesErr); err != nil {
		return s, err
	}
	return snapshot{
		pools: s.pools, nodes: pointers(nodes.Items), pods: pointers(pods.Items), daemonSets: pointers(daemonSets.Items),
		stocks: stocks, classes: classes,
	}, nil
}

func pointers[T any](items []T) []*T {
	var all []*T
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

// due returns the nodes that have been empty for long enough, unless they wait for the pods of a request.
func (a *autoscaler) due(rooms []*room, booked map[string]bool, now time.Time) []*corev1.Node {
	empty := map[types.UID]time.Time{}
	var due []*corev1.Node
	for _, room := range rooms {
		if len(room.pods) > 0 || room.planned || booked[room.node.Name] {
			continue
		}
		since, known := a.empty[room.node.UID]
		if !known {
			since = now
		}
		empty[room.node.UID] = since
		if now.Sub(since) >= unneeded {
			due = append(due, room.node)
		}
	}
	a.empty = empty
	return due
}

// grow gives nodes to a pool.
func (a *autoscaler) grow(ctx context.Context, pool gke.Pool, nodes []*corev1.Node) error {
	added, err := a.engine.Add(ctx, pool, nodes)
	if added > 0 {
		a.logger.Info("autoscaler: nodes added", "pool", pool.Name(), "nodes", added)
	}
	return err
}

// remove removes a node unless a pod runs on it. It closes the node to pods first, so that none
// arrives after the check.
func (a *autoscaler) remove(ctx context.Context, pool gke.Pool, node *corev1.Node) error {
	if err := a.cordon(ctx, node, true); err != nil {
		return utilerrors.FilterOut(err, apierrors.IsNotFound)
	}
	pods, err := a.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node.Name})
	if err != nil || slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return works(&pod) }) {
		return errors.Join(err, a.cordon(ctx, node, false))
	}
	a.logger.Info("autoscaler: node removed", "pool", pool.Name(), "node", node.Name)
	// It is this node, not another one of its name.
	err = a.client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &node.UID}})
	return utilerrors.FilterOut(err, apierrors.IsNotFound)
}

// cordon closes a node to new pods, or opens it.
func (a *autoscaler) cordon(ctx context.Context, node *corev1.Node, closed bool) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"unschedulable":%t}}`, node.UID, closed)
	_, err := a.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

// StockName is the name of a ConfigMap in kube-system that has a [Stock], as JSON, for the names
// of pools. Without one, there are machines enough.
const StockName = "stock"

// Stock describes the machines that Google Cloud can provide for a pool.
type Stock struct {
	// Machines is how many nodes the pool can have now.
	Machines *int `json:"machines,omitempty"`
	// Broken machines become nodes that take no pods.
	Broken bool `json:"broken,omitempty"`
	// Refusal is why requests for its nodes fail, or "". When GKE refuses, and when a request waits, was not seen.
	Refusal string `json:"refusal,omitempty"`
}

func (a *autoscaler) readStock(ctx context.Context) (map[string]Stock, error) {
	configMap, err := a.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, StockName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stocks := map[string]Stock{}
	for pool, text := range configMap.Data {
		var stock Stock
		if err := json.Unmarshal([]byte(text), &stock); err != nil {
			return nil, fmt.Errorf("ConfigMap %s: %s: %w", StockName, pool, err)
		}
		stocks[pool] = stock
	}
	return stocks, nil
}

// limit returns how many nodes a pool can have now.
func (p *plan) limit(pool gke.Pool) int {
	if machines := p.stocks[pool.Name()].Machines; machines != nil {
		return min(*machines, pool.Max())
	}
	return pool.Max()
}
