package persia_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestPodSettings checks the pod settings of a stack file.
func TestPodSettings(t *testing.T) {
	recorder := deployDevJob(t, map[string]any{
		"imagePullSecrets": []any{map[string]any{"name": "registry"}},
		"volumes":          []any{map[string]any{"name": "memory", "emptyDir": map[string]any{"medium": "Memory", "sizeLimit": "8Gi"}}},
	}, map[string]any{
		"terminationGracePeriodSeconds": 600,
		"volumeMounts":                  []any{map[string]any{"name": "memory", "mountPath": "/dev/shm"}},
	})
	pod := testkit.Object[appsv1.StatefulSet](t, recorder.One(t, testkit.StatefulSet, "adult-income-nn-worker")).Spec.Template.Spec
	assert.Equal(t, []corev1.LocalObjectReference{{Name: "registry"}}, pod.ImagePullSecrets)
	assert.Equal(t, int64(600), *pod.TerminationGracePeriodSeconds)
	var shared []string
	for _, mount := range pod.Containers[0].VolumeMounts {
		if mount.MountPath == "/dev/shm" {
			shared = append(shared, mount.Name)
		}
	}
	assert.Equal(t, []string{"memory"}, shared, "the job's own shared memory takes the place of ours")
}

// TestScriptStyle: the roles of older releases.
func TestScriptStyle(t *testing.T) {
	recorder := deployDevJob(t, map[string]any{"script": map[string]any{"runtime": "/workspace/runtime"}}, nil)
	for name, older := range map[string]string{
		"nn-worker": "trainer", "dataloader": "datacompose", "embedding-worker": "middleware", "embedding-ps": "embserver",
	} {
		set := testkit.Object[appsv1.StatefulSet](t, recorder.One(t, testkit.StatefulSet, "adult-income-"+name))
		assert.Equal(t, []string{"/bin/bash", "/opt/persia/roles.sh", older}, container(&set).Args)
		assert.Equal(t, "/opt/conda/bin/python3", variable(&set, "PERSIA_PYTHON").Value)
		assert.Equal(t, "/workspace/runtime", variable(&set, "PERSIA_RUNTIME").Value)
		assert.Equal(t, "23333", variable(&set, "PERSIA_PORT").Value)
		if probe := container(&set).ReadinessProbe; probe != nil {
			assert.Contains(t, probe.Exec.Command[2], "/23333")
		}
	}
	scripts := testkit.Object[corev1.ConfigMap](t, recorder.One(t, testkit.ConfigMap, "persia-launch"))
	assert.Contains(t, scripts.Data["roles.sh"], "torch.distributed.launch")
}

// TestSuspended: a suspended job has no pods, and all of its objects.
func TestSuspended(t *testing.T) {
	recorder := deployDevJob(t, map[string]any{"suspend": true}, nil)
	for _, registered := range recorder.All(t, testkit.StatefulSet) {
		set := testkit.Object[appsv1.StatefulSet](t, registered)
		assert.Zero(t, *set.Spec.Replicas)
		assert.Equal(t, "1", variable(&set, "REPLICA_SIZE").Value, "what the job has when it goes on")
	}
	assert.Len(t, recorder.URNs(), len(programtest.DeployStack(t, "dev").URNs()))
}

// TestPodSecurity: the namespace admits what Kubernetes calls baseline, unless a job
// mounts directories of nodes.
func TestPodSecurity(t *testing.T) {
	level := func(recorder *testkit.Recorder) string {
		return testkit.Object[corev1.Namespace](t, recorder.One(t, testkit.Namespace, "persia")).Labels["pod-security.kubernetes.io/enforce"]
	}
	assert.Equal(t, "baseline", level(programtest.DeployStack(t, "dev")))
	assert.Equal(t, "privileged", level(deployDevJob(t, map[string]any{
		"volumes": []any{map[string]any{"name": "data", "hostPath": map[string]any{"path": "/data"}}},
	}, nil)))
}

// deployDevJob runs the program over dev with settings of its job and nn-workers.
func deployDevJob(t *testing.T, job, nnWorkers map[string]any) *testkit.Recorder {
	t.Helper()
	configuration := programtest.ReadStack(t, "dev")
	programtest.Edit(t, configuration, "persia:jobs", func(jobs any) {
		first := jobs.([]any)[0].(map[string]any)
		for name, value := range job {
			first[name] = value
		}
		for name, value := range nnWorkers {
			first["nnWorker"].(map[string]any)[name] = value
		}
	})
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	return recorder
}

// container is the container of the pods of a StatefulSet.
func container(set *appsv1.StatefulSet) corev1.Container { return set.Spec.Template.Spec.Containers[0] }

// variable returns a variable of a role's environment.
func variable(set *appsv1.StatefulSet, name string) corev1.EnvVar {
	env := container(set).Env
	return env[slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == name })]
}
