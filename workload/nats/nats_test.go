package nats_test

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// seeds are PERSIA's own two NatsClusters as settings of a stack, and one that uses all settings.
var seeds = map[string]string{
	"documentation": `{
		"size": 1, "maxPayload": 52428800,
		"resources": {"limits": {"memory": "8Gi", "cpu": "2"}}}`,
	"published": `{
		"size": 60, "maxPayload": 52428800, "nodePool": "nats",
		"resources": {"requests": {"memory": "32Gi", "cpu": "4"}, "limits": {"memory": "32Gi", "cpu": "4"}}}`,
	"everything": `{
		"name": "broker", "size": 5, "version": "2.10.20", "image": "registry.example.com/nats", "maxPayload": 1048576,
		"nodePool": "nats", "antiAffinity": true, "metrics": true,
		"resources": {"limits": {"cpu": "4", "memory": "8Gi"}}}`,
}

// TestSeedNATS compares the objects with testdata. In sandbox/e2e, the operator reads each of their fields.
func TestSeedNATS(t *testing.T) {
	for name, settings := range seeds {
		t.Run(name, func(t *testing.T) {
			assertGolden(t, name, natsOf(t, settings))
		})
	}
}

// natsOf returns the resources of the stack prod with other settings for NATS.
func natsOf(t *testing.T, settings string) *testkit.Recorder {
	t.Helper()
	configuration := programtest.ReadStack(t, "Pulumi.prod.yaml", testkit.Edits{
		"persia:images":                         nil,             // the images are as they are published
		"persia:cluster.systemPool.machineType": "e2-standard-8", // the seed's one server of 8 GiB is there
	})
	configuration["persia:nats"] = settings
	return programtest.MustDeploy(t, configuration)
}

func assertGolden(t *testing.T, name string, recorder *testkit.Recorder) {
	t.Helper()
	registration := recorder.All(t, testkit.NATSCluster)[0]
	text := testkit.Must(json.Marshal(registration.Inputs.Mappable()))(t)
	got := testkit.Must(yaml.JSONToYAML(text))(t)
	testkit.AssertFile(t, "natscluster-"+name+".yaml", string(got))
}
