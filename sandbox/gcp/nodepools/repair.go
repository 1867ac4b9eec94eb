package nodepools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// FixedLabel is on the ConfigMaps, in kube-system, that describe the pools whose
// number of nodes is fixed.
const FixedLabel = "sandbox.persia.com/fixed"

const (
	// repairDelay is how long a lost node is away. GKE takes minutes.
	repairDelay = time.Second
)

// Repair replaces lost nodes of pools with a fixed number of nodes, until ctx ends, as Google's
// managed instance groups do. The new machine has the name of the lost one, and none of its pods.
func Repair(ctx context.Context, config *rest.Config, logger *slog.Logger) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("repair of node pools: %w", err)
	}
	lost := make(chan struct{}, 1)
	notify := func() {
		select {
		case lost <- struct{}{}:
		default:
		}
	}
	notify() // for changes before the watch
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = clusterLabel }))
	defer factory.Shutdown()
	if _, err := factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(any) { notify() },
	}); err != nil {
		return fmt.Errorf("repair of node pools: %w", err)
	}
	factory.Start(ctx.Done())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-lost:
		}
		_ = wait.PollUntilContextCancel(ctx, repairDelay, false, func(ctx context.Context) (bool, error) {
			err := RepairOnce(ctx, client, logger)
			if err != nil && ctx.Err() == nil {
				logger.Error("repair of node pools: trying again", "error", err)
			}
			return err == nil, nil
		})
	}
}

// RepairOnce gives the pools the nodes that they lack now.
func RepairOnce(ctx context.Context, client kubernetes.Interface, logger *slog.Logger) error {
	list, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: FixedLabel})
	if err != nil {
		return err
	}
	var errs []error
	for i := range list.Items {
		pool, err := FromConfigMap(&list.Items[i])
		if err == nil {
			err = pool.Repair(ctx, client, logger)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Repair makes the nodes that a pool lacks. If the pool has changed or gone
// meanwhile, the provider may not have seen them: they are taken back.
func (p Pool) Repair(ctx context.Context, client kubernetes.Interface, logger *slog.Logger) error {
	existing, err := listNodes(ctx, client, p.inputs)
	if err != nil {
		return err
	}
	made := map[string]corev1.Node{}
	for name, node := range p.wanted(existing) {
		if _, exists := existing[name]; exists {
			continue
		}
		if err := deletePods(ctx, client, name); err != nil {
			return err
		}
		created, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return err
		}
		made[name] = *created
		logger.Info("node repaired", "pool", p.Name(), "node", name)
	}
	if len(made) == 0 {
		return nil
	}
	current, err := p.Current(ctx, client)
	if err == nil && !current {
		err = deleteNodes(ctx, client, made)
	}
	return err
}
