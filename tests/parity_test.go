package tests

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
	"persia/workload/persia/operator/persiav1"
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

// TestParityFields sees what becomes of every field of a PersiaJob, and finds it
// described.
func TestParityFields(t *testing.T) {
	recorder := deployManifest(t, parityManifest)
	runs := func(of string) func(string, *appsv1.StatefulSet) {
		return func(role string, set *appsv1.StatefulSet) {
			if role == of {
				assert.Equal(t, "persia-launcher "+upstreamRoles[of].args, strings.Join(testkit.Container(set).Args, " "))
			}
		}
	}
	seen := map[string]func(role string, set *appsv1.StatefulSet){
		"metadata.name": func(role string, set *appsv1.StatefulSet) {
			assert.Equal(t, "parity-"+upstreamRoles[role].pod, set.Name)
		},
		"metadata.namespace": func(_ string, set *appsv1.StatefulSet) { assert.Equal(t, "persia", set.Namespace) },
		"spec.persiaEnv": func(role string, set *appsv1.StatefulSet) {
			for name, roles := range map[string][]string{
				"PERSIA_GLOBAL_CONFIG": nil, "PERSIA_EMBEDDING_CONFIG": nil, "PERSIA_NN_WORKER_ENTRY": {"nnWorker"}, "PERSIA_DATALOADER_ENTRY": {"dataloader"},
			} {
				assert.Equal(t, roles == nil || slices.Contains(roles, role), testkit.Variable(set, name).Value != "", "%s of %s", name, role)
			}
		},
		"spec.persiaEnv.PERSIA_GLOBAL_CONFIG": func(_ string, set *appsv1.StatefulSet) {
			assert.Equal(t, "/a/global.yml", testkit.Variable(set, "PERSIA_GLOBAL_CONFIG").Value)
		},
		"spec.persiaEnv.PERSIA_EMBEDDING_CONFIG": func(_ string, set *appsv1.StatefulSet) {
			assert.Equal(t, "/a/embedding.yml", testkit.Variable(set, "PERSIA_EMBEDDING_CONFIG").Value)
		},
		"spec.persiaEnv.PERSIA_NN_WORKER_ENTRY": func(role string, set *appsv1.StatefulSet) {
			assert.Equal(t, map[string]string{"nnWorker": "/a/train.py"}[role], testkit.Variable(set, "PERSIA_NN_WORKER_ENTRY").Value)
		},
		"spec.persiaEnv.PERSIA_DATALOADER_ENTRY": func(role string, set *appsv1.StatefulSet) {
			assert.Equal(t, map[string]string{"dataloader": "/a/load.py"}[role], testkit.Variable(set, "PERSIA_DATALOADER_ENTRY").Value)
		},
		"spec.enableMetrics": func(_ string, set *appsv1.StatefulSet) {
			assert.Empty(t, testkit.Variable(set, "PERSIA_METRICS_GATEWAY_ADDR").Name)
			assert.NotContains(t, strings.Join(recorder.URNs(), "\n"), "parity-metrics-gateway")
		},
		"spec.volumes": func(_ string, set *appsv1.StatefulSet) {
			assert.Contains(t, set.Spec.Template.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
				NFS: &corev1.NFSVolumeSource{Server: "10.0.0.1", Path: "/data"},
			}})
		},
		"spec.env": func(_ string, set *appsv1.StatefulSet) { assert.Equal(t, "job", testkit.Variable(set, "A").Value) },
		"spec.logLevel": func(_ string, set *appsv1.StatefulSet) {
			assert.Equal(t, "debug", testkit.Variable(set, "LOG_LEVEL").Value)
		},
		"spec.restartPolicy": func(_ string, set *appsv1.StatefulSet) {
			assert.Empty(t, set.Spec.Template.Spec.RestartPolicy, "Kubernetes' default, always")
		},
		"spec.imagePullPolicy": func(_ string, set *appsv1.StatefulSet) {
			assert.Equal(t, corev1.PullIfNotPresent, testkit.Container(set).ImagePullPolicy)
		},
		"spec.nnWorker":                 runs("nnWorker"),
		"spec.dataloader":               runs("dataloader"),
		"spec.embeddingWorker":          runs("embeddingWorker"),
		"spec.embeddingParameterServer": runs("embeddingParameterServer"),
		"spec.ROLE.replicas": func(_ string, set *appsv1.StatefulSet) {
			assert.Equal(t, int32(2), *set.Spec.Replicas)
		},
		"spec.ROLE.resources": func(_ string, set *appsv1.StatefulSet) {
			limits := testkit.Container(set).Resources.Limits
			assert.Equal(t, "2Gi", limits.Memory().String())
		},
		"spec.ROLE.volumeMounts": func(_ string, set *appsv1.StatefulSet) {
			assert.Contains(t, testkit.Container(set).VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data/", SubPath: "a", ReadOnly: true})
		},
		"spec.ROLE.env": func(_ string, set *appsv1.StatefulSet) { assert.Equal(t, "role", testkit.Variable(set, "B").Value) },
		"spec.ROLE.image": func(_ string, set *appsv1.StatefulSet) {
			assert.Equal(t, "example.com/role:1", testkit.Container(set).Image)
		},
		"spec.nnWorker.nprocPerNode": func(role string, set *appsv1.StatefulSet) {
			assert.Equal(t, map[string]string{"nnWorker": "3"}[role], testkit.Variable(set, "NPROC_PER_NODE").Value)
		},
	}
	fields := append([]string{"metadata.name", "metadata.namespace"}, fieldsOf(reflect.TypeFor[persiav1.PersiaJobSpec](), "spec")...)
	for _, field := range fields {
		t.Run(field, func(t *testing.T) {
			require.Contains(t, seen, field)
			for role, upstream := range upstreamRoles {
				set := testkit.Object[appsv1.StatefulSet](t, recorder.One(t, testkit.StatefulSet, "parity-"+upstream.pod))
				seen[field](role, &set)
			}
		})
	}
	assert.Len(t, seen, len(fields), "each field once, and no other")
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

// fieldsOf returns the paths of all fields below a type of the operator's API, with ROLE for each
// role.
func fieldsOf(typ reflect.Type, path string) []string {
	var paths []string
	for _, f := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		at, inner := path+"."+name, f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if _, role := upstreamRoles[strings.TrimPrefix(path, "spec.")]; role && name != "nprocPerNode" {
			at = "spec.ROLE." + name
		}
		if !slices.Contains(paths, at) {
			paths = append(paths, at)
		}
		if inner.Kind() == reflect.Struct && inner.PkgPath() == typ.PkgPath() {
			for _, deeper := range fieldsOf(inner, path+"."+name) {
				if !slices.Contains(paths, deeper) {
					paths = append(paths, deeper)
				}
			}
		}
	}
	return paths
}
