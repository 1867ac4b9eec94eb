package persia_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"persia/internal/programtest"
	"persia/internal/testkit"
	"persia/workload/persia/persiav1"
)

// operatorStack returns the stack prod with its job left to PERSIA's operator.
func operatorStack(t *testing.T, change func(job map[string]any)) map[string]string {
	t.Helper()
	configuration := programtest.LeftToOperator(t)
	programtest.Edit(t, configuration, "persia:jobs", func(jobs any) {
		change(jobs.([]any)[0].(map[string]any))
	})
	return configuration
}

func unchanged(map[string]any) {}

func deployOperator(t *testing.T, change func(job map[string]any)) *testkit.Recorder {
	t.Helper()
	recorder, err := programtest.Deploy(t, operatorStack(t, change))
	require.NoError(t, err)
	return recorder
}

// TestPersiaJob compares every field of a PersiaJob.
func TestPersiaJob(t *testing.T) {
	recorder := deployOperator(t, func(job map[string]any) {
		job["volumes"] = []any{map[string]any{"name": "scratch", "emptyDir": map[string]any{}}}
		job["restartPolicy"], job["imagePullPolicy"], job["logLevel"] = "OnFailure", "IfNotPresent", "debug"
		role := job["dataloader"].(map[string]any)
		role["image"] = "registry.example.com/loader:1"
		role["env"] = []any{map[string]any{"name": "LOG_DIR", "value": "/tmp"}}
		role["mounts"] = []any{map[string]any{"volume": "data", "mountPath": "/data", "readOnly": true}}
		role["volumeMounts"] = []any{map[string]any{"name": "scratch", "mountPath": "/scratch", "subPath": "a"}}
	})
	var want persiav1.PersiaJob
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
apiVersion: persia.com/v1
kind: PersiaJob
metadata:
  name: criteo
  namespace: persia
  labels:
    app.kubernetes.io/name: persia-job
    app.kubernetes.io/instance: criteo
    app.kubernetes.io/part-of: persia
    app.kubernetes.io/managed-by: pulumi
spec:
  persiaEnv:
    PERSIA_GLOBAL_CONFIG: /workspace/persia-exp/global_config.yml
    PERSIA_EMBEDDING_CONFIG: /workspace/persia-exp/criteo_embedding_config.yml
    PERSIA_NN_WORKER_ENTRY: /workspace/persia-exp/train.py
    PERSIA_DATALOADER_ENTRY: /workspace/persia-exp/data_compose.py
  enableMetrics: true
  volumes:
    - {name: claim-0, persistentVolumeClaim: {claimName: workspace}}
    - {name: claim-1, persistentVolumeClaim: {claimName: data-claim, readOnly: true}}
    - {name: launch, configMap: {name: LAUNCH}}
    - {name: shared-memory, emptyDir: {medium: Memory}}
    - {name: scratch, emptyDir: {}}
  env:
    - {name: PERSIA_NATS_URL, value: "nats://persia-nats-service.nats-io.svc:4222"}
    - {name: PERSIA_MODEL_CONFIG, value: /workspace/persia-exp/criteo_config.yml}
    - {name: LOG_DIR, value: /workspace/logs/}
  logLevel: debug
  restartPolicy: OnFailure
  imagePullPolicy: IfNotPresent
  nnWorker:
    replicas: 8
    nprocPerNode: 8
    env:
      - {name: PERSIA_ROLE, value: nn-worker}
      - {name: PERSIA_SCRIPT, value: /workspace/persia-exp/train.py}
      - {name: PERSIA_NN_WORKER_ENTRY, value: /opt/persia/entry.py}
      - {name: PERSIA_GPUS, value: "8"}
      - {name: PERSIA_REPLICA_METRICS, value: /metrics/job/criteo/run/1/role/nn-worker/replica/$(REPLICA_INDEX)/of/$(REPLICA_SIZE)}
      - {name: PERSIA_NODE_RANK, value: $(REPLICA_INDEX)}
      - {name: PERSIA_NODES, value: $(REPLICA_SIZE)}
      - {name: REPLICA_INDEX, value: "0"}
      - {name: REPLICA_SIZE, value: "1"}
    resources:
      requests: {cpu: "80", memory: 600Gi, nvidia.com/gpu: "8"}
      limits: {cpu: "80", memory: 600Gi, nvidia.com/gpu: "8"}
    volumeMounts:
      - {name: claim-0, mountPath: /workspace}
      - {name: launch, mountPath: /opt/persia, readOnly: true}
      - {name: shared-memory, mountPath: /dev/shm}
  dataloader:
    replicas: 240
    image: registry.example.com/loader:1
    resources:
      requests: {cpu: "1", memory: 12Gi}
      limits: {cpu: "1", memory: 12Gi}
    env:
      - {name: LOG_DIR, value: /tmp}
      - {name: PERSIA_ROLE, value: dataloader}
      - {name: PERSIA_SCRIPT, value: /workspace/persia-exp/data_compose.py}
      - {name: PERSIA_DATALOADER_ENTRY, value: /opt/persia/entry.py}
      - {name: PERSIA_REPLICA_METRICS, value: /metrics/job/criteo/run/1/role/dataloader/replica/$(REPLICA_INDEX)/of/$(REPLICA_SIZE)}
    volumeMounts:
      - {name: claim-0, mountPath: /workspace}
      - {name: claim-1, mountPath: /data, readOnly: true}
      - {name: scratch, mountPath: /scratch, subPath: a}
      - {name: launch, mountPath: /opt/persia, readOnly: true}
      - {name: shared-memory, mountPath: /dev/shm}
  embeddingWorker:
    replicas: 100
    resources:
      requests: {cpu: "28", memory: 100Gi}
      limits: {cpu: "28", memory: 100Gi}
    volumeMounts:
      - {name: claim-0, mountPath: /workspace}
  embeddingParameterServer:
    replicas: 120
    resources:
      requests: {cpu: "80", memory: 2500Gi}
      limits: {cpu: "80", memory: 2500Gi}
    volumeMounts:
      - {name: claim-0, mountPath: /workspace}
`), &want))
	scripts := testkit.Object[corev1.ConfigMap](t, recorder.One(t, testkit.ConfigMap, "persia-launch"))
	want.Spec.Volumes[2].ConfigMap.Name = scripts.Name
	assert.Contains(t, scripts.Data, "entry.py")
	job := testkit.Object[persiav1.PersiaJob](t, recorder.One(t, testkit.PersiaJob, "criteo"))
	job.Annotations = nil // with the digest of the pods
	assert.Equal(t, want, job)
}

// TestSuspendedPersiaJob checks that the operator creates no pods for a suspended job.
func TestSuspendedPersiaJob(t *testing.T) {
	recorder := deployOperator(t, func(job map[string]any) { job["suspend"] = true })
	spec := testkit.Object[persiav1.PersiaJob](t, recorder.One(t, testkit.PersiaJob, "criteo")).Spec
	assert.False(t, *spec.EnableMetrics)
	for _, role := range []persiav1.Role{*spec.Dataloader, *spec.EmbeddingWorker, *spec.EmbeddingParameterServer, spec.NNWorker.Role} {
		assert.Zero(t, role.Replicas)
	}
}

// TestPersiaJobIsMadeAnew: the operator looks at no change of a job, and needs the
// names of its pods free.
func TestPersiaJobIsMadeAnew(t *testing.T) {
	recorder := deployOperator(t, unchanged)
	guard, job := recorder.One(t, testkit.DisruptionBudget, "criteo"), recorder.One(t, testkit.PersiaJob, "criteo")
	for _, registration := range []testkit.Resource{guard, job} {
		assert.True(t, registration.RegisterRPC.DeleteBeforeReplace, registration.URN)
	}
	assert.Contains(t, job.RegisterRPC.ReplaceWith, guard.URN)
	assert.Contains(t, job.Dependencies(), guard.URN)

	budget := testkit.Object[policyv1.PodDisruptionBudget](t, guard)
	assert.Equal(t, 8+240+100+120+1, budget.Spec.MinAvailable.IntValue(), "all pods and the gateway")
	assert.Equal(t, map[string]string{"persia_job": "criteo"}, budget.Spec.Selector.MatchLabels)
	assert.Contains(t, budget.Annotations["pulumi.com/waitFor"], "{.status.expectedPods}=0")

	other := deployOperator(t, func(job map[string]any) { job["logLevel"] = "debug" })
	assert.NotEqual(t, guard.RegisterRPC.ReplacementTrigger, other.One(t, testkit.DisruptionBudget, "criteo").RegisterRPC.ReplacementTrigger)
	same := deployOperator(t, unchanged)
	assert.Equal(t, guard.RegisterRPC.ReplacementTrigger, same.One(t, testkit.DisruptionBudget, "criteo").RegisterRPC.ReplacementTrigger)
}

// TestPersiaOperatorOrder checks that a job is created after the operator, its definition and its
// rights, and deleted before them, since only the operator can let it go.
func TestPersiaOperatorOrder(t *testing.T) {
	recorder := deployOperator(t, unchanged)
	crd := recorder.One(t, "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition", "persia-operator")
	assert.Equal(t, "persiajobs.persia.com", testkit.Object[extensionsv1.CustomResourceDefinition](t, crd).Name)
	deployment := recorder.One(t, testkit.Deployment, "persia-operator")
	binding := recorder.One(t, "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding", "persia-operator")
	clusterBinding := recorder.One(t, "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding", "persia-operator")
	assert.Subset(t, deployment.Dependencies(), []string{crd.URN, binding.URN, clusterBinding.URN})
	assert.Contains(t, recorder.Before(binding), recorder.One(t, testkit.Namespace, "persia").URN)

	before := recorder.Before(recorder.One(t, testkit.PersiaJob, "criteo"))
	for _, need := range []testkit.Resource{crd, deployment, binding, clusterBinding} {
		assert.Contains(t, before, need.URN)
	}
	for typeToken, name := range map[string]string{
		testkit.NATSCluster:                             "persia-nats-service",
		testkit.DisruptionBudget:                        "persia-nats-service",
		"kubernetes:core/v1:PersistentVolumeClaim":      "workspace",
		"kubernetes:apps/v1:DaemonSet":                  "nvidia-driver",
		"kubernetes:networking.k8s.io/v1:NetworkPolicy": "persia-operator",
	} {
		assert.Contains(t, before, recorder.One(t, typeToken, name).URN)
	}
}

// TestPersiaJobCompletion checks that a job of the operator has a Kubernetes Job for its
// completion, also without metrics, which depends on the job and changes with it. A job that is
// suspended or never ends has none.
func TestPersiaJobCompletion(t *testing.T) {
	const job, name = "kubernetes:batch/v1:Job", "criteo-completion"
	recorder := deployOperator(t, func(job map[string]any) { job["enableMetrics"] = false })
	registered := recorder.One(t, job, name)
	assert.Contains(t, registered.Dependencies(), recorder.One(t, testkit.PersiaJob, "criteo").URN)
	for _, kind := range []string{"core/v1:ServiceAccount", "rbac.authorization.k8s.io/v1:Role", "rbac.authorization.k8s.io/v1:RoleBinding", "networking.k8s.io/v1:NetworkPolicy"} {
		assert.Contains(t, registered.Dependencies(), recorder.One(t, "kubernetes:"+kind, name).URN)
	}
	complete := testkit.Object[batchv1.Job](t, registered)
	assert.Equal(t, "criteo", complete.Labels["persia_job"])
	assert.NotContains(t, complete.Spec.Template.Labels, "persia_job", "the operator deletes the pods with this label, and the guard counts them")
	policy := testkit.Object[networkingv1.NetworkPolicy](t, recorder.One(t, "kubernetes:networking.k8s.io/v1:NetworkPolicy", name))
	assert.Equal(t, complete.Spec.Template.Labels, policy.Spec.PodSelector.MatchLabels)
	pod := complete.Spec.Template.Spec
	assert.Equal(t, programtest.OperatorImage, pod.Containers[0].Image)
	assert.Contains(t, pod.Containers[0].Env, corev1.EnvVar{Name: "PERSIA_REPLICAS", Value: "dataloader=240,embedding-worker=100,embedding-ps=120,nn-worker=8"})

	other := deployOperator(t, func(job map[string]any) { job["enableMetrics"], job["logLevel"] = false, "debug" })
	assert.NotEqual(t, complete.Name, testkit.Object[batchv1.Job](t, other.One(t, job, name)).Name)
	for field, value := range map[string]any{"suspend": true, "restartPolicy": "Always"} {
		assert.Empty(t, deployOperator(t, func(job map[string]any) { job[field] = value }).Some(job), field)
	}
}

// TestOperatorRunsCachedImages checks that PERSIA's operator creates pods of cached images, also
// for roles that name no image.
func TestOperatorRunsCachedImages(t *testing.T) {
	configuration := operatorStack(t, unchanged)
	configuration["persia:images"] = `{"caches": [{"registry": "docker.io"}]}`
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	job := recorder.One(t, testkit.PersiaJob, "criteo")
	for role, image := range map[string]string{"nnWorker": "persia-cuda-runtime", "dataloader": "persia-cpu-runtime", "embeddingWorker": "persia-cpu-runtime", "embeddingParameterServer": "persia-cpu-runtime"} {
		assert.Equal(t, programtest.ProdCache+"persiaml/"+image+":latest", testkit.At(t, job, "spec."+role+".image"), role)
	}
}
