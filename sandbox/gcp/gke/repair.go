package gke

import (
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

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
