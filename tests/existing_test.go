package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
)

// TestExistingCluster: of a cluster that is there already, nothing of Google Cloud
// is in the plan.
func TestExistingCluster(t *testing.T) {
	configuration := readStack(t, "prod")
	delete(configuration, "persia:project")
	delete(configuration, "persia:images") // a cache that the stack would create
	configuration["persia:cluster"] = `{"name": "shared", "existing":
		{"kubeconfig": "/home/me/kubeconfig", "context": "office", "systemPool": "nats"}}`
	recorder, err := deploy(t, configuration)
	require.NoError(t, err)
	for _, urn := range recorder.urns() {
		assert.NotContains(t, urn, "gcp:")
	}
	provider := recorder.one(t, "pulumi:providers:kubernetes", "shared")
	assert.Equal(t, "/home/me/kubeconfig", at(t, provider, "kubeconfig"))
	assert.Equal(t, "office", at(t, provider, "context"))
	assert.Equal(t, "shared", at(t, provider, "clusterIdentifier"))

	operator := object[appsv1.Deployment](t, recorder.one(t, "kubernetes:apps/v1:Deployment", "nats-operator"))
	assert.Equal(t, "nats", operator.Spec.Template.Spec.NodeSelector["cloud.google.com/gke-nodepool"])
	for _, registration := range recorder.registrations {
		if strings.HasPrefix(registration.TypeToken, "kubernetes:") {
			assert.Contains(t, registration.Provider, "::shared", registration.urn)
		}
	}
}
