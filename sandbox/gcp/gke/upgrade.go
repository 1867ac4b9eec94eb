package gke

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"

	"persia/gcp"
	"persia/sandbox/gcp/google"
)

// replace replaces the nodes of another shape in the zones of the pool by nodes that are missing, in
// rounds, as GKE does: it takes away maxSurge + maxUnavailable at a time, and adds maxSurge before. It
// takes both out of the maps.
func (e Engine) replace(ctx context.Context, client kubernetes.Interface, pool Pool, missing map[string]*corev1.Node, tooMany map[string]corev1.Node) error {
	var stale []string
	for name, node := range tooMany {
		own := len(pool.indices(slices.Values([]string{name}))) > 0
		if !own && slices.Contains(pool.zones, zoneOf(&node)) {
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
		return e.createNodes(ctx, client, batch)
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

func (e Engine) createNodes(ctx context.Context, client kubernetes.Interface, nodes map[string]*corev1.Node) error {
	if err := e.Quotas.check(ctx, client, nodes); err != nil {
		return err
	}
	return each(ctx, maps.Keys(nodes), func(ctx context.Context, name string) error {
		_, err := client.CoreV1().Nodes().Create(ctx, nodes[name], metav1.CreateOptions{})
		return utilerrors.FilterOut(err, apierrors.IsAlreadyExists)
	})
}

// Quotas are how many vCPUs the nodes of the control plane may have, by the quota of Compute Engine,
// like M2_CPUS. One that is missing has no limit.
type Quotas map[string]int64

// check refuses nodes that exceed a quota together with the existing ones, as Compute Engine does. GKE
// cannot go on with an upgrade then, and the pool stays as it is in the middle of it.
func (q Quotas) check(ctx context.Context, client kubernetes.Interface, more map[string]*corev1.Node) error {
	if len(q) == 0 || len(more) == 0 {
		return nil
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	all := maps.Clone(more)
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	taken := map[string]int64{}
	for _, node := range all {
		taken[quotaOf(node)] += node.Status.Capacity.Cpu().Value()
	}
	for _, node := range more {
		quota := quotaOf(node)
		if most, limited := q[quota]; limited && taken[quota] > most {
			return fmt.Errorf("googleapi: Error 403: Quota '%s' exceeded. Limit: %d.0 in region %s., quotaExceeded", quota, most, node.Labels[corev1.LabelTopologyRegion])
		}
	}
	return nil
}

// quotaOf returns the name of the quota of a node's vCPUs.
func quotaOf(node *corev1.Node) string {
	return gcp.Machine{Type: node.Labels[corev1.LabelInstanceTypeStable]}.CPUQuota(node.Labels[gcp.LabelSpot] == "true")
}
