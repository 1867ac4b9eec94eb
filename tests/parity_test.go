package tests

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"persia/internal/programtest"
	"persia/internal/testkit"
	"persia/workload/persia/persiav1"
)

// upstreamRoles are the roles of a PersiaJob, and the pods that PERSIA's operator
// makes of them (k8s/src/crd.rs in PersiaML/PERSIA).
var upstreamRoles = map[string]struct {
	pod, image, args string
	env              []string
}{
	"nnWorker": {"nn-worker", "persiaml/persia-cuda-runtime:latest",
		"nn-worker $(PERSIA_NN_WORKER_ENTRY) --nproc-per-node $(NPROC_PER_NODE) --nnodes $(REPLICA_SIZE) --node-rank $(REPLICA_INDEX)",
		[]string{"NPROC_PER_NODE", "PERSIA_NN_WORKER_ENTRY"}},
	"dataloader": {"dataloader", "persiaml/persia-cpu-runtime:latest",
		"data-loader $(PERSIA_DATALOADER_ENTRY) --replica-index $(REPLICA_INDEX) --replica-size $(REPLICA_SIZE)",
		[]string{"PERSIA_DATALOADER_ENTRY"}},
	"embeddingWorker": {"embedding-worker", "persiaml/persia-cpu-runtime:latest",
		"embedding-worker --embedding-config $(PERSIA_EMBEDDING_CONFIG) --global-config $(PERSIA_GLOBAL_CONFIG) --replica-index $(REPLICA_INDEX) --replica-size $(REPLICA_SIZE)",
		nil},
	"embeddingParameterServer": {"embedding-ps", "persiaml/persia-cpu-runtime:latest",
		"embedding-parameter-server --embedding-config $(PERSIA_EMBEDDING_CONFIG) --global-config $(PERSIA_GLOBAL_CONFIG) --replica-index $(REPLICA_INDEX) --replica-size $(REPLICA_SIZE)",
		nil},
}

// upstreamEnv are the variables that the operator gives to all roles.
var upstreamEnv = []string{
	"PERSIA_EMBEDDING_CONFIG", "PERSIA_GLOBAL_CONFIG", "LOG_LEVEL", "RUST_BACKTRACE", "PERSIA_METRICS_GATEWAY_ADDR",
	"REPLICA_INDEX", "REPLICA_SIZE",
}

// parityManifest sets every field of a PersiaJob to something that is not its
// default.
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

// TestParityFields compares the pods of a PersiaJob with every field set with a file. A field of the
// operator's API that the manifest lacks needs a line there.
func TestParityFields(t *testing.T) {
	var job struct{ Spec persiav1.PersiaJobSpec }
	require.NoError(t, yaml.UnmarshalStrict([]byte(strings.NewReplacer("apiVersion: persia.com/v1\n", "", "kind: PersiaJob\n", "", "metadata: {name: parity, namespace: elsewhere}\n", "").Replace(parityManifest)), &job))
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

// TestParityPods compares the pods of PERSIA's example with the pods of its operator.
func TestParityPods(t *testing.T) {
	dev := programtest.DeployStack(t, "dev")
	for role, upstream := range upstreamRoles {
		set := testkit.Object[appsv1.StatefulSet](t, dev.One(t, testkit.StatefulSet, "adult-income-"+upstream.pod))
		assert.Equal(t, "persia-launcher "+upstream.args, strings.Join(testkit.Container(&set).Args, " "))
		assert.Equal(t, upstream.image, testkit.Container(&set).Image)
		assert.Equal(t, "adult-income", set.Spec.Template.Labels["persia_job"])
		for _, name := range append(upstream.env, upstreamEnv...) {
			assert.Equal(t, name, testkit.Variable(&set, name).Name, "%s of %s", name, role)
		}
	}
}

// deployManifest runs the program over dev's stack with a manifest as its job.
func deployManifest(t *testing.T, manifest string) *testkit.Recorder {
	t.Helper()
	project := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(project, "job.yml"), []byte(manifest), 0o600))
	configuration := programtest.ReadStack(t, "dev")
	configuration["persia:jobs"] = `[{"manifest": "job.yml", "nodePool": "gpu"}]`
	programtest.Edit(t, configuration, "persia:nodePools", func(pools any) {
		pool := pools.([]any)[0].(map[string]any)
		pool["machineType"], pool["gpu"], pool["nodes"] = "g2-standard-96", map[string]any{"type": "nvidia-l4", "count": 8}, 2
	})
	recorder, err := programtest.DeployIn(t, project, configuration)
	require.NoError(t, err)
	return recorder
}
