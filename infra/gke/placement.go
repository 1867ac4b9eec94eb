package gke

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/gcp"
	"persia/infra/gpu"
	"persia/kube"
)

// spotTaint keeps pods off nodes that Google may reclaim.
var spotTaint = config.Taint{Key: gcp.TaintSpot, Value: "true", Effect: corev1.TaintEffectNoSchedule}

// PlacementOn pins pods to a node pool and tolerates its taints, including the taints that GKE adds.
func PlacementOn(pool config.Pool) kube.Placement {
	placement := kube.Placement{NodeSelector: map[string]string{gcp.LabelNodePool: pool.Name}}
	for _, taint := range ownTaints(pool) {
		placement.Tolerations = append(placement.Tolerations, corev1.Toleration{
			Key:      taint.Key,
			Operator: corev1.TolerationOpEqual,
			Value:    taint.Value,
			Effect:   taint.Effect,
		})
	}
	if pool.QueuedProvisioning {
		placement.Tolerations = append(placement.Tolerations, corev1.Toleration{
			Key: gcp.TaintQueued, Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule,
		})
	}
	if pool.GPU != nil {
		placement.Tolerations = append(placement.Tolerations, gpu.Toleration())
	}
	return placement
}

// ownTaints returns the taints that the program gives to a pool.
func ownTaints(pool config.Pool) []config.Taint {
	if !pool.Spot {
		return pool.Taints
	}
	return append(slices.Clip(pool.Taints), spotTaint)
}
