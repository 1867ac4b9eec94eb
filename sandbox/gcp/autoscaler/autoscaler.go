package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"persia/sandbox/gcp/nodepools"
)

const (
	// settle is how long a round waits for more events like the one that called for it: pods come
	// in numbers.
	settle = 500 * time.Millisecond
	// unneeded is how long a node is empty before the autoscaler removes it. GKE waits ten minutes.
	unneeded = 10 * time.Second
	// retry is when a round that failed is tried again.
	retry = time.Second
	// look is how often the autoscaler looks at requests, and for machines that it could not get.
	look = time.Second
	// nodeRequests bounds the requests under way at once.
	nodeRequests = 16
)

// Run scales the autoscaled pools of the cluster at config until ctx ends.
func Run(ctx context.Context, config *rest.Config, logger *slog.Logger) error {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("autoscaler: %w", err)
	}
	requests, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("autoscaler: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(metav1.NamespaceAll)})
	a := newAutoscaler(client, requests, logger)
	a.recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "cluster-autoscaler"})
	if err := a.run(ctx); err != nil {
		return fmt.Errorf("autoscaler: %w", err)
	}
	return nil
}

type autoscaler struct {
	client   kubernetes.Interface
	requests dynamic.Interface
	logger   *slog.Logger
	recorder record.EventRecorder
	settle   time.Duration
	idle     *idle

	// workloads and described watch what the listers list.
	workloads, described informers.SharedInformerFactory

	pods          corelisters.PodLister
	daemonSets    appslisters.DaemonSetLister
	announcements corelisters.ConfigMapLister
}

func newAutoscaler(client kubernetes.Interface, requests dynamic.Interface, logger *slog.Logger) *autoscaler {
	workloads := informers.NewSharedInformerFactory(client, 0)
	described := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(metav1.NamespaceSystem),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = nodepools.AutoscaledLabel }))
	return &autoscaler{
		client:        client,
		requests:      requests,
		logger:        logger,
		recorder:      &record.FakeRecorder{},
		settle:        settle,
		idle:          newIdle(unneeded),
		workloads:     workloads,
		described:     described,
		pods:          workloads.Core().V1().Pods().Lister(),
		daemonSets:    workloads.Apps().V1().DaemonSets().Lister(),
		announcements: described.Core().V1().ConfigMaps().Lister(),
	}
}

// run makes a round whenever something has changed, and when an empty node is due
// to go.
func (a *autoscaler) run(ctx context.Context) error {
	changed, err := a.watch(ctx)
	if err != nil {
		return err
	}
	defer a.workloads.Shutdown()
	defer a.described.Shutdown()
	for ctx.Err() == nil {
		wait, err := a.round(ctx)
		if err != nil && ctx.Err() == nil {
			a.logger.Error("autoscaler: trying again", "error", err)
			wait = retry
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		case <-changed:
			sleep(ctx, a.settle)
			// The next round sees what has changed by now.
			select {
			case <-changed:
			default:
			}
		}
	}
	return nil
}

// watch returns when the listers know everything, with a channel that says when
// that has changed.
func (a *autoscaler) watch(ctx context.Context) (<-chan struct{}, error) {
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handlers := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
		DeleteFunc: func(any) { notify() },
	}
	for _, informer := range []cache.SharedIndexInformer{
		a.workloads.Core().V1().Pods().Informer(),
		a.workloads.Apps().V1().DaemonSets().Informer(),
		a.described.Core().V1().ConfigMaps().Informer(),
	} {
		if _, err := informer.AddEventHandler(handlers); err != nil {
			return nil, err
		}
	}
	a.workloads.Start(ctx.Done())
	a.described.Start(ctx.Done())
	a.workloads.WaitForCacheSync(ctx.Done())
	a.described.WaitForCacheSync(ctx.Done())
	return changed, nil
}

func sleep(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}

// round adds and removes nodes once. It returns how long to wait, if nothing
// changes, until a node is due to go.
func (a *autoscaler) round(ctx context.Context) (time.Duration, error) {
	snapshot, err := a.observe(ctx)
	if err != nil {
		return 0, err
	}
	plan := newPlan(snapshot)
	a.tell(plan)
	now := time.Now()
	booked, err := a.answerRequests(ctx, plan, now)
	errs := []error{err}
	idle := slices.DeleteFunc(slices.Clone(plan.rooms), func(r *room) bool { return booked[r.node.Name] })
	due, wait := a.idle.due(idle, now)
	if len(plan.stocks) > 0 || slices.ContainsFunc(plan.pools, nodepools.Pool.Queued) {
		wait = min(wait, look)
	}
	for _, pool := range plan.pools {
		errs = append(errs,
			a.grow(ctx, pool, plan.newNodes(pool)),
			a.shrink(ctx, pool, pool.Spare(plan.nodes(pool), ofPool(pool, due))))
	}
	return wait, errors.Join(errs...)
}

// observe reads the cluster. The listers may lag behind, which is harmless for pods. A node that
// the last round created must be known, or the autoscaler would create it again.
func (a *autoscaler) observe(ctx context.Context) (snapshot, error) {
	var s snapshot
	announcements, err := a.announcements.List(labels.SelectorFromSet(labels.Set{nodepools.AutoscaledLabel: "true"}))
	if err != nil || len(announcements) == 0 {
		return s, err
	}
	for _, announcement := range announcements {
		pool, err := nodepools.FromConfigMap(announcement)
		if err != nil {
			return s, err
		}
		s.pools = append(s.pools, pool)
	}
	slices.SortFunc(s.pools, func(a, b nodepools.Pool) int { return strings.Compare(a.Name(), b.Name()) })
	if s.pods, err = a.pods.List(labels.Everything()); err != nil {
		return s, err
	}
	if s.daemonSets, err = a.daemonSets.List(labels.Everything()); err != nil {
		return s, err
	}
	if s.stocks, err = a.readStock(ctx); err != nil {
		return s, err
	}
	nodes, err := a.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	for i := range nodes.Items {
		s.nodes = append(s.nodes, &nodes.Items[i])
	}
	return s, nil
}

// tell writes events to the pods, in the words of GKE's autoscaler.
func (a *autoscaler) tell(plan *plan) {
	for _, room := range plan.rooms {
		for _, pod := range room.pods {
			if room.planned {
				a.recorder.Eventf(pod, corev1.EventTypeNormal, "TriggeredScaleUp", "pod triggered scale-up of node pool %s", room.pool)
			}
		}
	}
	for pod, reason := range plan.refused {
		a.recorder.Eventf(pod, corev1.EventTypeNormal, "NotTriggerScaleUp", "pod didn't trigger scale-up: %s", reason)
	}
}

// grow gives nodes to a pool. If the pool has changed or gone meanwhile, the
// provider may not have seen them: they are taken back.
func (a *autoscaler) grow(ctx context.Context, pool nodepools.Pool, nodes []*corev1.Node) error {
	if len(nodes) == 0 {
		return nil
	}
	created, err := a.create(ctx, nodes)
	current, currentErr := pool.Current(ctx, a.client)
	if currentErr == nil && !current {
		for _, node := range created {
			err = errors.Join(err, a.delete(ctx, node))
		}
		return err
	}
	a.logger.Info("autoscaler: nodes added", "pool", pool.Name(), "nodes", len(created))
	return errors.Join(err, currentErr)
}

// create creates nodes, and returns the created ones without those that existed already.
func (a *autoscaler) create(ctx context.Context, nodes []*corev1.Node) ([]*corev1.Node, error) {
	var group errgroup.Group
	group.SetLimit(nodeRequests)
	var lock sync.Mutex
	var created []*corev1.Node
	for _, node := range nodes {
		group.Go(func() error {
			made, err := a.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			if err != nil {
				return err
			}
			lock.Lock()
			defer lock.Unlock()
			created = append(created, made)
			return nil
		})
	}
	return created, group.Wait()
}

// shrink takes empty nodes from a pool.
func (a *autoscaler) shrink(ctx context.Context, pool nodepools.Pool, nodes []*corev1.Node) error {
	var group errgroup.Group
	group.SetLimit(nodeRequests)
	for _, node := range nodes {
		group.Go(func() error { return a.remove(ctx, pool, node) })
	}
	return group.Wait()
}

// remove removes a node unless a pod runs on it. It closes the node to pods first, so that none
// arrives after the check.
func (a *autoscaler) remove(ctx context.Context, pool nodepools.Pool, node *corev1.Node) error {
	if err := a.cordon(ctx, node, true); err != nil {
		return ignoreNotFound(err)
	}
	pods, err := a.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node.Name).String(),
	})
	if err != nil || slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return works(&pod) && pod.Spec.NodeName == node.Name }) {
		return errors.Join(err, a.cordon(ctx, node, false))
	}
	a.logger.Info("autoscaler: node removed", "pool", pool.Name(), "node", node.Name)
	return a.delete(ctx, node)
}

// cordon closes a node to new pods, or opens it.
func (a *autoscaler) cordon(ctx context.Context, node *corev1.Node, closed bool) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"unschedulable":%t}}`, node.UID, closed)
	_, err := a.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

// delete removes this node, not another one of its name.
func (a *autoscaler) delete(ctx context.Context, node *corev1.Node) error {
	err := a.client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &node.UID},
	})
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
