package queue_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/gcp"
	"persia/internal/programtest"
	"persia/internal/testkit"
	"persia/workload/queue"
)

// queued returns the example with queues, whose nn-workers alone are on a pool with queued provisioning.
func queued(t *testing.T) map[string]string {
	t.Helper()
	configuration := programtest.ReadStack(t, "examples/Pulumi.queues.yaml")
	programtest.Edit(t, configuration, "persia:nodePools", func(pools any) {
		nnWorkers := pools.([]any)[0].(map[string]any)
		delete(nnWorkers, "nodes")
		nnWorkers["autoscaling"] = map[string]any{"minNodes": 0, "maxNodes": 2}
		nnWorkers["queuedProvisioning"] = true
	})
	programtest.Edit(t, configuration, "persia:jobs", func(jobs any) {
		for _, job := range jobs.([]any) {
			job.(map[string]any)["dataloader"].(map[string]any)["nodePool"] = "embeddings"
		}
	})
	return configuration
}

// TestProvisioner checks that nn-workers alone wait for a request, and what the provisioner may do.
func TestProvisioner(t *testing.T) {
	recorder, err := programtest.Deploy(t, queued(t))
	require.NoError(t, err)
	set := testkit.Object[queue.JobSet](t, recorder.One(t, queue.JobSetToken, "feed"))
	for _, role := range set.Spec.ReplicatedJobs {
		pod := role.Template.Spec.Template
		tolerates := assert.NotContains
		if role.Name == "nn-worker" {
			assert.Equal(t, "feed", pod.Annotations[gcp.AnnotationRequest])
			assert.Equal(t, "queued-provisioning.gke.io", pod.Annotations[gcp.AnnotationRequestClass])
			tolerates = func(t assert.TestingT, s, contains any, _ ...any) bool { return assert.Contains(t, s, contains) }
		} else {
			assert.NotContains(t, pod.Annotations, gcp.AnnotationRequest, role.Name)
		}
		tolerates(t, pod.Spec.Tolerations, corev1.Toleration{
			Key: "cloud.google.com/gke-queued", Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule,
		}, role.Name)
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

// TestNoProvisioner: a stack without such a pool has none.
func TestNoProvisioner(t *testing.T) {
	recorder, err := programtest.Deploy(t, programtest.ReadStack(t, "examples/Pulumi.queues.yaml"))
	require.NoError(t, err)
	for _, deployment := range recorder.Some("kubernetes:apps/v1:Deployment") {
		assert.NotEqual(t, "provisioner", deployment.Name)
	}
}
