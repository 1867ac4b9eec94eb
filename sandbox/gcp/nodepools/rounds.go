package nodepools

import (
	"context"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"

	"persia/sandbox/gcp/property"
)

// upgrade says how GKE replaces the nodes of a pool by nodes of another shape: it takes away
// maxSurge + maxUnavailable at a time, and adds maxSurge before. Blue-green adds all before.
type upgrade struct{ atOnce, surge int }

// upgradeOf reads the upgrade settings of a pool, or returns GKE's own.
func upgradeOf(pool nodePool, nodes int) upgrade {
	settings := property.Object(pool.inputs, "upgradeSettings")
	if property.Text(settings, "strategy") == "BLUE_GREEN" {
		batch := property.NumberOr(property.Object(property.Object(settings, "blueGreenSettings"), "standardRolloutPolicy"), "batchNodeCount", 1)
		return upgrade{atOnce: max(1, batch), surge: nodes}
	}
	surge := property.NumberOr(settings, "maxSurge", 1)
	return upgrade{atOnce: max(1, surge+property.NumberOr(settings, "maxUnavailable", 0)), surge: surge}
}

// replace replaces the nodes of another shape in the zones of the pool by nodes that are missing, in
// rounds. It takes both out of the maps.
func (p nodePool) replace(ctx context.Context, client kubernetes.Interface, missing map[string]*corev1.Node, tooMany map[string]corev1.Node) error {
	var stale []string
	for name, node := range tooMany {
		own := len(p.indices(slices.Values([]string{name}))) > 0
		if !own && slices.Contains(p.zones, node.Labels[corev1.LabelTopologyZone]) {
			stale = append(stale, name)
		}
	}
	slices.Sort(stale)
	fresh := slices.Sorted(maps.Keys(missing))
	count := min(len(stale), len(fresh))
	how := upgradeOf(p, count)
	created := 0
	create := func(until int) error {
		batch := map[string]*corev1.Node{}
		for ; created < min(until, count); created++ {
			batch[fresh[created]] = missing[fresh[created]]
			delete(missing, fresh[created])
		}
		return p.createNodes(ctx, client, batch)
	}
	for begin := 0; begin < count; begin += how.atOnce {
		end := min(begin+how.atOnce, count)
		if err := create(begin + how.surge); err != nil {
			return err
		}
		batch := map[string]corev1.Node{}
		for _, name := range stale[begin:end] {
			batch[name] = tooMany[name]
			delete(tooMany, name)
		}
		if err := deleteNodes(ctx, client, batch); err != nil {
			return err
		}
		if err := create(end); err != nil {
			return err
		}
	}
	return nil
}

func (p nodePool) createNodes(ctx context.Context, client kubernetes.Interface, nodes map[string]*corev1.Node) error {
	if err := p.quotas.check(ctx, client, nodes); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(nodeRequests)
	for _, node := range nodes {
		group.Go(func() error {
			_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			return utilerrors.FilterOut(err, apierrors.IsAlreadyExists)
		})
	}
	return group.Wait()
}
