package persia_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"persia/internal/programtest"
	"persia/internal/testkit"
	"persia/kube"
)

// TestGatewayIsNoRole checks that no object of a role selects the gateway as one of
// its replicas, since both have the label of the job.
func TestGatewayIsNoRole(t *testing.T) {
	prod := programtest.DeployStack(t, "prod")
	gateway := testkit.Object[appsv1.Deployment](t, prod.One(t, testkit.Deployment, "criteo-metrics-gateway"))
	for _, registered := range prod.All(t, testkit.StatefulSet) {
		set := testkit.Object[appsv1.StatefulSet](t, registered)
		assert.False(t, selects(t, set.Spec.Selector, gateway.Spec.Template.Labels), set.Name)
	}
}

// TestPodMonitoring: by default all gateways are scraped, and every series has the
// name of its job.
func TestPodMonitoring(t *testing.T) {
	prod := programtest.DeployStack(t, "prod")
	require.Len(t, prod.All(t, testkit.PodMonitoring), 1)
	registered := prod.One(t, testkit.PodMonitoring, "persia")
	monitoring := testkit.Object[kube.PodMonitoring](t, registered)
	assert.Equal(t, "persia", monitoring.Namespace)
	assert.Contains(t, registered.Dependencies(), prod.One(t, testkit.Namespace, "persia").URN)
	assert.Contains(t, registered.Dependencies(), prod.One(t, testkit.Deployment, "nats-operator").URN, "its webhook must serve")

	gateway := testkit.Object[appsv1.Deployment](t, prod.One(t, testkit.Deployment, "criteo-metrics-gateway"))
	assert.True(t, selects(t, &monitoring.Spec.Selector, gateway.Spec.Template.Labels))
	dataloader := testkit.Object[appsv1.StatefulSet](t, prod.One(t, testkit.StatefulSet, "criteo-dataloader"))
	assert.False(t, selects(t, &monitoring.Spec.Selector, dataloader.Spec.Template.Labels))

	require.Len(t, monitoring.Spec.Endpoints, 1)
	assert.Equal(t, 9091, monitoring.Spec.Endpoints[0].Port.IntValue())
	assert.Equal(t, "15s", monitoring.Spec.Endpoints[0].Interval)
	assert.Equal(t, []kube.LabelMapping{{From: "persia_job"}}, monitoring.Spec.TargetLabels.FromPod)
}

// TestWithoutManagedPrometheus: a cluster may not know the kind PodMonitoring, and
// has the dashboard all the same.
func TestWithoutManagedPrometheus(t *testing.T) {
	cases := map[string]func(configuration map[string]string){
		"turned off": func(configuration map[string]string) {
			programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
				cluster.(map[string]any)["monitoring"] = map[string]any{"managedPrometheus": false}
			})
		},
		"an existing cluster": func(configuration map[string]string) {
			delete(configuration, "persia:project")
			delete(configuration, "persia:images")
			configuration["persia:cluster"] = `{"name": "shared", "existing": {"context": "office", "systemPool": "nats"}}`
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStack(t, "prod")
			programtest.Edit(t, configuration, "persia:nats", func(nats any) { nats.(map[string]any)["metrics"] = true })
			change(configuration)
			recorder, err := programtest.Deploy(t, configuration)
			require.NoError(t, err)
			assert.Empty(t, recorder.Some(testkit.PodMonitoring))
			recorder.One(t, testkit.ConfigMap, "persia-dashboard")
		})
	}
}

// selects reports whether a selector selects a pod by its labels.
func selects(t testing.TB, selector *metav1.LabelSelector, pod map[string]string) bool {
	t.Helper()
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	return parsed.Matches(labels.Set(pod))
}
