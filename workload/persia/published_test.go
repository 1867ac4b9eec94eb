package persia_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// publishedRole is a role of the published deployment.
type publishedRole struct {
	replicas         int32
	cpu, memory, gpu string
	pool             string
	image            string
	args             []string
	env              map[string]string
	port             int32
	sharedMemory     bool
}

var (
	embeddingArgs = []string{"--embedding-config", "$(PERSIA_EMBEDDING_CONFIG)", "--global-config", "$(PERSIA_GLOBAL_CONFIG)",
		"--replica-index", "$(REPLICA_INDEX)", "--replica-size", "$(REPLICA_SIZE)"}

	publishedRoles = map[string]publishedRole{
		"criteo-nn-worker": {
			replicas: 8, cpu: "80", memory: "600Gi", gpu: "8", pool: "nn-workers",
			image: "persiaml/persia-cuda-runtime:latest",
			args: []string{"nn-worker", "$(PERSIA_NN_WORKER_ENTRY)", "--nproc-per-node", "$(NPROC_PER_NODE)",
				"--nnodes", "$(REPLICA_SIZE)", "--node-rank", "$(REPLICA_INDEX)"},
			env: map[string]string{
				"REPLICA_SIZE": "8", "NPROC_PER_NODE": "8", "WORLD_SIZE": "64",
				"MASTER_ADDR": "criteo-nn-worker-0.criteo-nn-worker.persia.svc", "MASTER_PORT": "23456",
				"NCCL_DEBUG":             "INFO",
				"PERSIA_NN_WORKER_ENTRY": "/workspace/persia-exp/train.py",
			},
			port: 23456, sharedMemory: true,
		},
		"criteo-dataloader": {
			replicas: 240, cpu: "1", memory: "12Gi", pool: "dataloaders",
			image: "persiaml/persia-cpu-runtime:latest",
			args: []string{"data-loader", "$(PERSIA_DATALOADER_ENTRY)",
				"--replica-index", "$(REPLICA_INDEX)", "--replica-size", "$(REPLICA_SIZE)"},
			env: map[string]string{
				"REPLICA_SIZE": "240", "PERSIA_DATALOADER_ENTRY": "/workspace/persia-exp/data_compose.py",
			},
			sharedMemory: true,
		},
		"criteo-embedding-worker": {
			replicas: 100, cpu: "28", memory: "100Gi", pool: "embedding-workers",
			image: "persiaml/persia-cpu-runtime:latest",
			args:  append([]string{"embedding-worker"}, embeddingArgs...),
			env:   map[string]string{"REPLICA_SIZE": "100"},
			port:  8887,
		},
		"criteo-embedding-ps": {
			replicas: 120, cpu: "80", memory: "2500Gi", pool: "embedding-ps",
			image: "persiaml/persia-cpu-runtime:latest",
			args:  append([]string{"embedding-parameter-server"}, embeddingArgs...),
			env:   map[string]string{"REPLICA_SIZE": "120"},
			port:  8888,
		},
	}

	commonEnv = map[string]string{
		"PERSIA_GLOBAL_CONFIG":        "/workspace/persia-exp/global_config.yml",
		"PERSIA_EMBEDDING_CONFIG":     "/workspace/persia-exp/criteo_embedding_config.yml",
		"PERSIA_MODEL_CONFIG":         "/workspace/persia-exp/criteo_config.yml",
		"LOG_LEVEL":                   "info",
		"RUST_BACKTRACE":              "full",
		"PERSIA_NATS_URL":             "nats://persia-nats-service.nats-io.svc:4222",
		"PERSIA_METRICS_GATEWAY_ADDR": "criteo-metrics-gateway-service:9091",
	}
)

func TestPublishedRoles(t *testing.T) {
	prod := programtest.DeployStack(t, "prod")
	require.Len(t, prod.All(t, testkit.StatefulSet), len(publishedRoles))
	for name, want := range publishedRoles {
		t.Run(name, func(t *testing.T) {
			set := testkit.Object[appsv1.StatefulSet](t, prod.One(t, testkit.StatefulSet, name))
			service := testkit.Object[corev1.Service](t, prod.One(t, testkit.Service, name))
			pod := set.Spec.Template.Spec
			require.Len(t, pod.Containers, 1)
			container := pod.Containers[0]

			assert.Equal(t, name, set.Name)
			assert.Equal(t, "persia", set.Namespace)
			assert.Equal(t, want.replicas, *set.Spec.Replicas)
			assert.Equal(t, appsv1.ParallelPodManagement, set.Spec.PodManagementPolicy)
			assert.Equal(t, programtest.ProdCache+want.image, container.Image)
			assert.Equal(t, []string{"python3", "/opt/persia/launch.py"}, container.Command)
			assert.Equal(t, append([]string{"persia-launcher"}, want.args...), container.Args)

			assert.Equal(t, name, set.Spec.ServiceName)
			assert.Equal(t, name, service.Name)
			assert.Equal(t, corev1.ClusterIPNone, service.Spec.ClusterIP)
			assert.Equal(t, set.Spec.Selector.MatchLabels, service.Spec.Selector)
			for key, value := range set.Spec.Selector.MatchLabels {
				assert.Equal(t, value, set.Spec.Template.Labels[key])
			}
			if want.port != 0 {
				assert.Equal(t, want.port, service.Spec.Ports[0].Port)
				assert.Equal(t, want.port, container.Ports[0].ContainerPort)
			}

			assertResources(t, want, container.Resources.Requests)
			assertResources(t, want, container.Resources.Limits)
			assertEnvironment(t, want, container.Env)

			assert.Equal(t, map[string]string{"cloud.google.com/gke-nodepool": want.pool}, pod.NodeSelector)
			assertTolerates(t, want, pod.Tolerations)
			assertMounts(t, want, pod)
			assert.Equal(t, "true", set.Spec.Template.Annotations["gke-gcsfuse/volumes"])
		})
	}
}

func assertResources(t *testing.T, want publishedRole, got corev1.ResourceList) {
	t.Helper()
	quantities := map[corev1.ResourceName]string{corev1.ResourceCPU: want.cpu, corev1.ResourceMemory: want.memory}
	if want.gpu != "" {
		quantities["nvidia.com/gpu"] = want.gpu
	}
	require.Len(t, got, len(quantities))
	for name, quantity := range quantities {
		amount := got[name]
		assert.Zero(t, amount.Cmp(resource.MustParse(quantity)), "%s is %s", name, amount.String())
	}
}

func assertEnvironment(t *testing.T, want publishedRole, env []corev1.EnvVar) {
	t.Helper()
	got := map[string]corev1.EnvVar{}
	for _, entry := range env {
		require.NotContains(t, got, entry.Name, "each name once")
		got[entry.Name] = entry
	}
	for _, expected := range []map[string]string{commonEnv, want.env} {
		for name, value := range expected {
			assert.Equal(t, value, got[name].Value, name)
		}
	}
	require.NotNil(t, got["REPLICA_INDEX"].ValueFrom)
	assert.Equal(t, "metadata.labels['apps.kubernetes.io/pod-index']", got["REPLICA_INDEX"].ValueFrom.FieldRef.FieldPath)
}

func assertTolerates(t *testing.T, want publishedRole, tolerations []corev1.Toleration) {
	t.Helper()
	key, value := "persia.com/dedicated", want.pool
	if want.gpu != "" {
		key, value = "nvidia.com/gpu", "present"
	}
	assert.Equal(t, []corev1.Toleration{{
		Key: key, Operator: corev1.TolerationOpEqual, Value: value, Effect: corev1.TaintEffectNoSchedule,
	}}, tolerations)
}

func assertMounts(t *testing.T, want publishedRole, pod corev1.PodSpec) {
	t.Helper()
	mounts := map[string]corev1.Volume{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		for _, volume := range pod.Volumes {
			if volume.Name == mount.Name {
				mounts[mount.MountPath] = volume
			}
		}
	}
	require.NotNil(t, mounts["/workspace"].PersistentVolumeClaim)
	assert.Equal(t, "workspace", mounts["/workspace"].PersistentVolumeClaim.ClaimName)
	if want.sharedMemory {
		require.NotNil(t, mounts["/dev/shm"].EmptyDir)
		assert.Equal(t, corev1.StorageMediumMemory, mounts["/dev/shm"].EmptyDir.Medium)
	} else {
		assert.NotContains(t, mounts, "/dev/shm")
	}
}

// TestEnvironmentOrder: the program's, the job's, the role's own, and the later
// wins.
func TestEnvironmentOrder(t *testing.T) {
	configuration := programtest.ReadStack(t, "dev")
	programtest.Edit(t, configuration, "persia:jobs", func(jobs any) {
		job := jobs.([]any)[0].(map[string]any)
		job["env"] = []any{
			map[string]any{"name": "RUST_BACKTRACE", "value": "job"},
			map[string]any{"name": "NCCL_DEBUG", "value": "job"},
		}
		job["nnWorker"].(map[string]any)["env"] = []any{map[string]any{"name": "NCCL_DEBUG", "value": "role"}}
	})
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	set := testkit.Object[appsv1.StatefulSet](t, recorder.One(t, testkit.StatefulSet, "adult-income-nn-worker"))
	got := map[string]string{}
	for _, entry := range set.Spec.Template.Spec.Containers[0].Env {
		require.NotContains(t, got, entry.Name)
		got[entry.Name] = entry.Value
	}
	assert.Equal(t, "job", got["RUST_BACKTRACE"])
	assert.Equal(t, "role", got["NCCL_DEBUG"])
}

func TestWithoutMetrics(t *testing.T) {
	configuration := programtest.ReadStack(t, "dev")
	programtest.Edit(t, configuration, "persia:jobs", func(jobs any) {
		jobs.([]any)[0].(map[string]any)["enableMetrics"] = false
	})
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	for _, registration := range recorder.Resources {
		assert.NotContains(t, registration.Name, "metrics-gateway")
	}
	set := testkit.Object[appsv1.StatefulSet](t, recorder.One(t, testkit.StatefulSet, "adult-income-dataloader"))
	for _, entry := range set.Spec.Template.Spec.Containers[0].Env {
		assert.NotEqual(t, "PERSIA_METRICS_GATEWAY_ADDR", entry.Name)
	}
}

// TestLongestJobName: the longest name that configuration allows gives objects
// whose names nothing has cut.
func TestLongestJobName(t *testing.T) {
	// A StatefulSet's pods carry its name, a hyphen and a hash of ten
	// characters in a label.
	const labelLimit, hash = 63, 11
	longest := labelLimit - hash - len("-embedding-worker")
	for length, valid := range map[int]bool{longest: true, longest + 1: false} {
		name := strings.Repeat("j", length)
		configuration := programtest.ReadStack(t, "dev")
		programtest.Edit(t, configuration, "persia:jobs", func(jobs any) { jobs.([]any)[0].(map[string]any)["name"] = name })
		recorder, err := programtest.Deploy(t, configuration)
		if !valid {
			assert.ErrorContains(t, err, "persia:jobs[0].name")
			continue
		}
		require.NoError(t, err)
		for _, role := range []string{"nn-worker", "dataloader", "embedding-worker", "embedding-ps"} {
			set := testkit.Object[appsv1.StatefulSet](t, recorder.One(t, testkit.StatefulSet, name+"-"+role))
			assert.Equal(t, name+"-"+role, set.Name)
		}
	}
}
