package queue_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/gcp"
	"persia/internal/programtest"
	"persia/internal/testkit"
	"persia/workload/queue"
)

// TestProvisioner checks that nn-workers alone wait for a request, for one of two pools, and what the provisioner may do.
func TestProvisioner(t *testing.T) {
	list := []any{"nn-workers", "more"}
	recorder := programtest.MustDeploy(t, programtest.ReadStack(t, "examples/Pulumi.queues.yaml", testkit.Edits{
		"persia:nodePools[0].nodes": nil, "persia:nodePools[0].autoscaling": testkit.Edits{"minNodes": 0, "maxNodes": 2},
		"persia:nodePools[0].queuedProvisioning": true, "persia:jobs[0].nnWorker.nodePool": list, "persia:jobs[1].nnWorker.nodePool": list,
		"persia:nodePools[2]": testkit.Edits{"name": "more", "machineType": "g2-standard-48", "queuedProvisioning": true,
			"autoscaling": testkit.Edits{"minNodes": 0, "maxNodes": 1}},
		"persia:jobs[0].dataloader.nodePool": "embeddings", "persia:jobs[1].dataloader.nodePool": "embeddings",
	}))
	set := testkit.Object[queue.JobSet](t, recorder.One(t, queue.JobSetToken, "feed"))
	assert.Equal(t, "nn-workers,more", set.Annotations["persia.com/node-pools"])
	assert.Empty(t, recorder.Some("kubernetes:cloud.google.com/v1:ComputeClass"), "the provisioner decides, not GKE")
	assert.Equal(t, "persia-nn-workers", testkit.At(t, recorder.One(t, testkit.NodePool, "persia-queues-more"), `nodeConfig.labels["persia.com/node-pools"]`))
	for _, role := range set.Spec.ReplicatedJobs {
		pod := role.Template.Spec.Template
		waits, request := role.Name == "nn-worker", []string{pod.Annotations[gcp.AnnotationRequest], pod.Annotations[gcp.AnnotationRequestClass]}
		assert.Equal(t, map[bool]string{true: "persia-nn-workers"}[waits], pod.Spec.NodeSelector["persia.com/node-pools"], role.Name)
		assert.Equal(t, map[bool][]string{true: {"feed", "queued-provisioning.gke.io"}, false: {"", ""}}[waits], request, role.Name)
		assert.Equal(t, waits, slices.Contains(pod.Spec.Tolerations, corev1.Toleration{
			Key: "cloud.google.com/gke-queued", Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule,
		}), role.Name)
	}

	role := testkit.Object[rbacv1.Role](t, recorder.One(t, "kubernetes:rbac.authorization.k8s.io/v1:Role", "provisioner"))
	assert.Equal(t, "persia", role.Namespace)
	for _, rule := range role.Rules {
		assert.Subset(t, []string{"list", "create", "delete"}, rule.Verbs)
		assert.NotContains(t, rule.Resources, "secrets")
	}
	for _, resource := range recorder.Some("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole") {
		assert.NotEqual(t, "provisioner", resource.Name)
	}
	for _, name := range []string{"persia-pods", "persia-images"} {
		policy := testkit.Object[admissionv1.ValidatingAdmissionPolicy](t, recorder.One(t, testkit.AdmissionPolicy, name))
		assert.Contains(t, policy.Spec.MatchConstraints.NamespaceSelector.MatchExpressions[0].Values, queue.ProvisionerNamespace, name)
	}
	deployment := recorder.One(t, "kubernetes:apps/v1:Deployment", "provisioner")
	assert.Contains(t, recorder.Before(recorder.One(t, queue.JobSetToken, "feed")), deployment.URN, "it is there as long as the jobs")
	assert.Equal(t, "python:3.13-alpine", testkit.Object[appsv1.Deployment](t, deployment).Spec.Template.Spec.Containers[0].Image)
}
