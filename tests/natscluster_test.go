package tests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"persia/internal/programtest"
	"persia/internal/pulumitest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// natsCluster has the fields of a NatsCluster that the program writes, under the
// names that the operator reads them by.
type natsCluster struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace   string            `json:"namespace"`
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Size                    int32  `json:"size"`
		Version                 string `json:"version"`
		ServerImage             string `json:"serverImage"`
		LameDuckDurationSeconds int    `json:"lameDuckDurationSeconds"`
		NatsConfig              struct {
			MaxPayload     int    `json:"maxPayload"`
			MaxPending     int    `json:"maxPending"`
			MaxConnections int    `json:"maxConnections"`
			WriteDeadline  string `json:"write_deadline"`
		} `json:"natsConfig"`
		Pod struct {
			NodeSelector       map[string]string           `json:"nodeSelector"`
			Tolerations        []corev1.Toleration         `json:"tolerations"`
			Resources          corev1.ResourceRequirements `json:"resources"`
			AntiAffinity       bool                        `json:"antiAffinity"`
			EnableConfigReload bool                        `json:"enableConfigReload"`
			ReloaderImage      string                      `json:"reloaderImage"`
			ReloaderImageTag   string                      `json:"reloaderImageTag"`
			ReloaderResources  corev1.ResourceRequirements `json:"reloaderResources"`
			EnableMetrics      bool                        `json:"enableMetrics"`
			MetricsImage       string                      `json:"metricsImage"`
			MetricsImageTag    string                      `json:"metricsImageTag"`
		} `json:"pod"`
		Template struct {
			Spec corev1.PodSpec `json:"spec"`
		} `json:"template"`
		TLS struct {
			ServerSecret string `json:"serverSecret"`
			RoutesSecret string `json:"routesSecret"`
		} `json:"tls"`
		Auth struct {
			ClientsAuthSecret string `json:"clientsAuthSecret"`
		} `json:"auth"`
	} `json:"spec"`
}

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

// TestSeedNATS: the objects are those of testdata, of which sandbox/e2e asks whether
// the operator reads every field.
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

// natsOf is what the stack prod registers with other settings for NATS.
func natsOf(t *testing.T, settings string) *pulumitest.Recorder {
	t.Helper()
	configuration := programtest.ReadStack(t, "prod")
	delete(configuration, "persia:images") // the images are as they are published
	configuration["persia:nats"] = settings
	programtest.Edit(t, configuration, "persia:jobs", func(jobs any) { allowUsers(jobs) })
	programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
		// The seed's one server of 8 GiB is on the system pool.
		cluster.(map[string]any)["systemPool"] = map[string]any{"machineType": "e2-standard-8", "nodes": 3}
	})
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	return recorder
}

// allowUsers says of the images of all jobs that they can log in to NATS.
func allowUsers(jobs any) {
	for _, job := range jobs.([]any) {
		job.(map[string]any)["nats"] = map[string]any{"credentials": true}
	}
}

func assertGolden(t *testing.T, name string, recorder *pulumitest.Recorder) {
	t.Helper()
	registration := recorder.All(t, pulumitest.NATSCluster)[0]
	pulumitest.Object[natsCluster](t, registration)
	text, err := json.Marshal(registration.Inputs.Mappable())
	require.NoError(t, err)
	got, err := yaml.JSONToYAML(text)
	require.NoError(t, err)
	golden := filepath.Join("testdata", "natscluster-"+name+".yaml")
	if *update {
		require.NoError(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "go test ./tests -update writes it anew")
}
