package tests

import (
	"strings"
	"testing"

	"persia/internal/programtest"
	"persia/internal/testkit"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
)

// TestExistingCluster checks that the plan for an existing cluster contains nothing of Google
// Cloud.
func TestExistingCluster(t *testing.T) {
	configuration := programtest.ReadStack(t, "prod")
	delete(configuration, "persia:project")
	delete(configuration, "persia:images") // a cache that the stack would create
	configuration["persia:cluster"] = `{"name": "shared", "existing":
		{"kubeconfig": "/home/me/kubeconfig", "context": "office", "systemPool": "nats"}}`
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	for _, urn := range recorder.URNs() {
		assert.NotContains(t, urn, "gcp:")
	}
	provider := recorder.One(t, "pulumi:providers:kubernetes", "shared")
	assert.Equal(t, "/home/me/kubeconfig", testkit.At(t, provider, "kubeconfig"))
	assert.Equal(t, "office", testkit.At(t, provider, "context"))
	assert.Equal(t, "shared", testkit.At(t, provider, "clusterIdentifier"))

	operator := testkit.Object[appsv1.Deployment](t, recorder.One(t, testkit.Deployment, "nats-operator"))
	assert.Equal(t, "nats", operator.Spec.Template.Spec.NodeSelector["cloud.google.com/gke-nodepool"])
	for _, registration := range recorder.Resources {
		if strings.HasPrefix(registration.TypeToken, "kubernetes:") {
			assert.Contains(t, registration.Provider, "::shared", registration.URN)
		}
	}
}
