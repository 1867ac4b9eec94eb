package tests

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/internal/programtest"
	"persia/internal/testkit"
	"persia/workload/persia/persiav1"
)

// parityManifest sets every field of a PersiaJob to something that is not its default.
const parityManifest = `
apiVersion: persia.com/v1
kind: PersiaJob
metadata: {name: parity, namespace: elsewhere}
spec:
  persiaEnv:
    PERSIA_GLOBAL_CONFIG: /a/global.yml
    PERSIA_EMBEDDING_CONFIG: /a/embedding.yml
    PERSIA_NN_WORKER_ENTRY: /a/train.py
    PERSIA_DATALOADER_ENTRY: /a/load.py
  enableMetrics: false
  volumes: [{name: data, nfs: {server: 10.0.0.1, path: /data}}]
  env: [{name: A, value: job}, {name: B, value: job}]
  logLevel: debug
  restartPolicy: Always
  imagePullPolicy: IfNotPresent
  embeddingParameterServer: &role
    replicas: 2
    resources: {requests: {cpu: "1", memory: 1Gi}, limits: {cpu: "2", memory: 2Gi}}
    volumeMounts: [{name: data, mountPath: /data/, subPath: a, readOnly: true}]
    env: [{name: B, value: role}]
    image: example.com/role:1
  embeddingWorker: *role
  dataloader: *role
  nnWorker:
    replicas: 2
    nprocPerNode: 3
    resources: {limits: {cpu: "2", memory: 2Gi, nvidia.com/gpu: "3"}}
    volumeMounts: [{name: data, mountPath: /data/, subPath: a, readOnly: true}]
    env: [{name: B, value: role}]
    image: example.com/role:1
`

// TestParityFields compares the pods of a PersiaJob that sets every field of the operator's API with a file.
func TestParityFields(t *testing.T) {
	var job struct{ Spec persiav1.PersiaJobSpec }
	require.NoError(t, yaml.Unmarshal([]byte(parityManifest), &job))
	for _, object := range []any{job.Spec, job.Spec.PersiaEnv, *job.Spec.NNWorker, *job.Spec.Dataloader} {
		for i := range reflect.TypeOf(object).NumField() {
			assert.False(t, reflect.ValueOf(object).Field(i).IsZero(), "%T.%s", object, reflect.TypeOf(object).Field(i).Name)
		}
	}
	recorder := deployManifest(t, parityManifest)
	assert.NotContains(t, strings.Join(recorder.URNs(), "\n"), "parity-metrics-gateway")
	var roles strings.Builder
	for _, resource := range planOf(t, recorder) {
		if strings.Contains(resource.urn, "StatefulSet::parity-") {
			roles.WriteString("---\n" + resource.yaml)
		}
	}
	testkit.AssertFile(t, "parity.plan.yaml", roles.String())
}

// TestOperatorPlan compares all that a job left to PERSIA's operator registers, and the operator, with a file.
func TestOperatorPlan(t *testing.T) {
	type edits = testkit.Edits
	const job, role = "persia:jobs[0].", "persia:jobs[0].dataloader."
	configuration := programtest.LeftToOperator(t, edits{
		job + "volumes":       []any{edits{"name": "scratch", "emptyDir": edits{}}},
		job + "restartPolicy": "OnFailure", job + "imagePullPolicy": "IfNotPresent", job + "logLevel": "debug",
		role + "image":        "registry.example.com/loader:1",
		role + "env":          []any{edits{"name": "LOG_DIR", "value": "/tmp"}},
		role + "mounts":       []any{edits{"volume": "data", "mountPath": "/data", "readOnly": true}},
		role + "volumeMounts": []any{edits{"name": "scratch", "mountPath": "/scratch", "subPath": "a"}},
	})
	var text strings.Builder
	for _, resource := range planOf(t, programtest.MustDeploy(t, configuration)) {
		if regexp.MustCompile(`::(criteo|persia-operator)`).MatchString(resource.urn) && !strings.Contains(resource.urn, "CustomResourceDefinition") {
			text.WriteString("---\n" + resource.yaml)
		}
	}
	testkit.AssertFile(t, "operator.plan.yaml", text.String())
}

// deployManifest runs the program over dev's stack with a manifest as its job.
func deployManifest(t *testing.T, manifest string) *testkit.Recorder {
	t.Helper()
	project := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(project, "job.yml"), []byte(manifest), 0o600))
	configuration := programtest.ReadStack(t, "Pulumi.dev.yaml", testkit.Edits{
		"persia:jobs[0]":                  testkit.Edits{"manifest": "job.yml", "nodePool": "gpu"},
		"persia:nodePools[0].machineType": "g2-standard-96", "persia:nodePools[0].gpu.count": 8, "persia:nodePools[0].nodes": 2,
	})
	return testkit.Must(programtest.Run(t, pulumi.RunInfo{Config: configuration, RootDirectory: project}, nil))(t)
}
