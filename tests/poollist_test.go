package tests

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestPoolList: the class tries pools in order; nodes carry it, pods select it, and tolerate the same for any length.
func TestPoolList(t *testing.T) {
	type edits = testkit.Edits
	pool := func(name string, more edits) edits {
		return edits{"name": name, "machineType": "a2-highgpu-8g", "autoscaling": edits{"minNodes": 0, "maxNodes": 8}}.And(more)
	}
	deploy := func(list ...any) (*testkit.Recorder, corev1.PodSpec) {
		plan := programtest.MustDeploy(t, programtest.ReadStack(t, "Pulumi.prod.yaml", edits{
			"persia:nodePools[5]":              pool("other", edits{}),
			"persia:nodePools[6]":              pool("spot", edits{"spot": true}),
			"persia:jobs[0].nnWorker.nodePool": list,
		}))
		return plan, testkit.Object[appsv1.StatefulSet](t, plan.One(t, "kubernetes:apps/v1:StatefulSet", "criteo-nn-worker")).Spec.Template.Spec
	}
	_, two := deploy("nn-workers", "other")
	plan, pod := deploy("nn-workers", "other", "spot")
	class := plan.One(t, "kubernetes:cloud.google.com/v1:ComputeClass", "persia-nn-workers")
	assert.Equal(t, []map[string][]string{{"nodepools": {"nn-workers"}}, {"nodepools": {"other"}}, {"nodepools": {"spot"}}},
		testkit.Part[[]map[string][]string](t, class, "spec.priorities"))
	assert.Equal(t, "DoNotScaleUp", testkit.At(t, class, "spec.whenUnsatisfiable"))
	assert.Equal(t, []any{false, false}, []any{testkit.At(t, class, "spec.activeMigration.optimizeRulePriority"), testkit.At(t, class, "spec.nodePoolAutoCreation.enabled")})
	for name, taints := range map[string]int{"nn-workers": 1, "other": 1, "spot": 2} {
		config := testkit.Part[struct {
			Labels map[string]string
			Taints []struct{ Key, Value string }
		}](t, plan.One(t, testkit.NodePool, "persia-prod-"+name), "nodeConfig")
		assert.Len(t, config.Taints, taints, name)
		assert.Equal(t, "persia-nn-workers", config.Labels["cloud.google.com/compute-class"], name)
	}
	assert.Equal(t, map[string]string{"cloud.google.com/compute-class": "persia-nn-workers"}, pod.NodeSelector)
	assert.Equal(t, two.Tolerations, pod.Tolerations)
	assert.Len(t, pod.Tolerations, 3, "spot machines, the class, and GPUs")
}
