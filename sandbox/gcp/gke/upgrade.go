package gke

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"

	"persia/sandbox/gcp/google"
)

// replace replaces the nodes of another shape in the zones of the pool by nodes that are missing, in
// rounds, as GKE does: it takes away maxSurge + maxUnavailable at a time, and adds maxSurge before. It
// takes both out of the maps.
func replace(ctx context.Context, client kubernetes.Interface, pool Pool, missing map[string]*corev1.Node, tooMany map[string]corev1.Node) error {
	var stale []string
	for name, node := range tooMany {
		if pool.zoneOfName(name) == "" && slices.Contains(pool.zones, zoneOf(&node)) {
			stale = append(stale, name)
		}
	}
	slices.Sort(stale)
	fresh := slices.Sorted(maps.Keys(missing))
	count := min(len(stale), len(fresh))
	surge := google.Number(pool.body, "upgradeSettings.maxSurge")
	atOnce := max(1, surge+google.Number(pool.body, "upgradeSettings.maxUnavailable"))
	created := 0
	create := func(until int) error {
		batch := map[string]*corev1.Node{}
		for ; created < min(until, count); created++ {
			batch[fresh[created]] = missing[fresh[created]]
			delete(missing, fresh[created])
		}
		return createNodes(ctx, client, batch)
	}
	for begin := 0; begin < count; begin += atOnce {
		end := min(begin+atOnce, count)
		if err := create(begin + surge); err != nil {
			return err
		}
		if err := deleteNodes(ctx, client, slices.Values(stale[begin:end])); err != nil {
			return err
		}
		for _, name := range stale[begin:end] {
			delete(tooMany, name)
		}
		if err := create(end); err != nil {
			return err
		}
	}
	return nil
}

func createNodes(ctx context.Context, client kubernetes.Interface, nodes map[string]*corev1.Node) error {
	return each(ctx, maps.Keys(nodes), func(ctx context.Context, name string) error {
		_, err := client.CoreV1().Nodes().Create(ctx, nodes[name], metav1.CreateOptions{})
		return utilerrors.FilterOut(err, apierrors.IsAlreadyExists)
	})
}
