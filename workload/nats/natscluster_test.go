package nats_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// seeds are PERSIA's own two NatsClusters as settings of a stack, and one that
// uses all settings.
var seeds = map[string]string{
	"documentation": `{
		"size": 1, "maxPayload": 52428800,
		"resources": {"limits": {"memory": "8Gi", "cpu": "2"}}}`,
	"published": `{
		"size": 60, "maxPayload": 52428800, "nodePool": "nats",
		"resources": {"requests": {"memory": "32Gi", "cpu": "4"}, "limits": {"memory": "32Gi", "cpu": "4"}}}`,
}

// TestSeedNATS compares the objects with testdata. A test of sandbox/e2e checks that the operator
// reads every field of testdata.
func TestSeedNATS(t *testing.T) {
	for name, settings := range seeds {
		t.Run(name, func(t *testing.T) {
			assertGolden(t, name, natsOf(t, settings))
		})
	}
	t.Run("everything", func(t *testing.T) {
		assertGolden(t, "everything", natsOf(t, everything(t)))
	})
}

// natsOf returns the resources of the stack prod with other settings for NATS.
func natsOf(t *testing.T, settings string) *testkit.Recorder {
	t.Helper()
	configuration := programtest.ReadStack(t, "prod")
	delete(configuration, "persia:images") // the images are as they are published
	configuration["persia:nats"] = settings
	programtest.Edit(t, configuration, "persia:jobs", programtest.AllowUsers)
	programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
		// The seed's one server of 8 GiB is on the system pool.
		cluster.(map[string]any)["systemPool"] = map[string]any{"machineType": "e2-standard-8", "nodes": 3}
	})
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	return recorder
}

func assertGolden(t *testing.T, name string, recorder *testkit.Recorder) {
	t.Helper()
	registration := recorder.All(t, testkit.NATSCluster)[0]
	testkit.Object[programtest.NATSCluster](t, registration)
	text, err := json.Marshal(registration.Inputs.Mappable())
	require.NoError(t, err)
	got, err := yaml.JSONToYAML(text)
	require.NoError(t, err)
	testkit.AssertFile(t, "natscluster-"+name+".yaml", string(got))
}
