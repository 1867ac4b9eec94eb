package nodepools

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"persia/gcp"
)

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
	taken, asked := map[string]int64{}, map[string]string{}
	for name, node := range all {
		quota := quotaOf(node)
		taken[quota] += node.Status.Capacity.Cpu().Value()
		if more[name] != nil {
			asked[quota] = node.Labels[corev1.LabelTopologyRegion]
		}
	}
	for _, quota := range slices.Sorted(maps.Keys(asked)) {
		if most, limited := q[quota]; limited && taken[quota] > most {
			return fmt.Errorf("googleapi: Error 403: Quota '%s' exceeded. Limit: %d.0 in region %s., quotaExceeded", quota, most, asked[quota])
		}
	}
	return nil
}

// quotaOf returns the name of the quota of a node's vCPUs.
func quotaOf(node *corev1.Node) string {
	return gcp.Machine{Type: node.Labels[corev1.LabelInstanceTypeStable]}.CPUQuota(node.Labels[gcp.LabelSpot] == "true")
}
