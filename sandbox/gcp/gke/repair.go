package gke

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// repairDelay is the time between two looks for lost nodes. GKE takes minutes.
const repairDelay = time.Second

// Repair replaces lost nodes of pools with a fixed number of nodes, until ctx ends, as Google's
// managed instance groups do. The new machine has the name of the lost one, and none of its pods.
func Repair(ctx context.Context, config *rest.Config, logger *slog.Logger) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("repair of node pools: %w", err)
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := repairPools(ctx, client, logger); err != nil && ctx.Err() == nil {
			logger.Error("repair of node pools: trying again", "error", err)
		}
	}, repairDelay)
	return nil
}

// repairPools gives the pools the nodes that they lack now.
func repairPools(ctx context.Context, client kubernetes.Interface, logger *slog.Logger) error {
	list, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: FixedLabel})
	if err != nil {
		return err
	}
	var errs []error
	for i := range list.Items {
		pool, err := FromConfigMap(&list.Items[i])
		if err == nil {
			err = pool.repair(ctx, client, logger)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (p Pool) repair(ctx context.Context, client kubernetes.Interface, logger *slog.Logger) error {
	existing, err := listNodes(ctx, client, p.path)
	if err != nil {
		return err
	}
	missing := map[string]*corev1.Node{}
	for name, node := range p.wanted(existing) {
		if _, exists := existing[name]; exists {
			continue
		}
		if err := deletePods(ctx, client, name); err != nil {
			return err
		}
		missing[name] = node
	}
	added, err := p.Add(ctx, client, missing)
	if added > 0 {
		logger.Info("nodes repaired", "pool", p.Name(), "nodes", added)
	}
	return err
}
