package persia_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestLaunch: where a run is remembered and its checkpoints are, and that the script
// that a replica starts with is there.
func TestLaunch(t *testing.T) {
	cases := map[string]struct {
		stack  string
		change func(jobs any)
		set    string
		want   map[string]string
	}{
		"on the job's volume": {"prod", func(any) {}, "criteo-nn-worker",
			map[string]string{
				"PERSIA_STATE_DIR": "/workspace/.persia/criteo/1", "PERSIA_CKPT_ROOT": "/workspace/criteo/1", "PERSIA_GPUS": "8",
				"PERSIA_REPLICAS": "dataloader=240,embedding-worker=100,embedding-ps=120,nn-worker=8",
			}},
		"of another run": {"prod", func(jobs any) { jobs.([]any)[0].(map[string]any)["runId"] = "second" }, "criteo-dataloader",
			map[string]string{"PERSIA_STATE_DIR": "/workspace/.persia/criteo/second", "PERSIA_CKPT_ROOT": "/workspace/criteo/second", "PERSIA_GPUS": ""}},
		"in the pod, where the job can write to no volume": {"dev", func(jobs any) {
			jobs.([]any)[0].(map[string]any)["mounts"].([]any)[0].(map[string]any)["readOnly"] = true
		}, "adult-income-nn-worker", map[string]string{"PERSIA_STATE_DIR": "/var/lib/persia/adult-income/1", "PERSIA_CKPT_ROOT": ""}},
		"with its own folders for temporary files": {"dev", func(any) {}, "adult-income-nn-worker", map[string]string{"PERSIA_SCRATCH": "/dev/shm:/tmp"}},
		"with folders for temporary files that outlive the pod": {"dev", func(jobs any) {
			job := jobs.([]any)[0].(map[string]any)
			job["volumes"] = []any{
				map[string]any{"name": "memory", "emptyDir": map[string]any{"medium": "Memory"}},
				map[string]any{"name": "data", "nfs": map[string]any{"server": "10.0.0.2", "path": "/"}},
			}
			job["nnWorker"].(map[string]any)["volumeMounts"] = []any{
				map[string]any{"name": "memory", "mountPath": "/dev/shm"}, map[string]any{"name": "data", "mountPath": "/tmp/"},
			}
		}, "adult-income-nn-worker", map[string]string{"PERSIA_SCRATCH": "/dev/shm"}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStack(t, test.stack)
			programtest.Edit(t, configuration, "persia:jobs", test.change)
			recorder, err := programtest.Deploy(t, configuration)
			require.NoError(t, err)
			pod := testkit.Object[appsv1.StatefulSet](t, recorder.One(t, testkit.StatefulSet, test.set)).Spec.Template.Spec

			env := map[string]string{}
			for _, entry := range pod.Containers[0].Env {
				env[entry.Name] = entry.Value
			}
			for name, value := range test.want {
				assert.Equal(t, value, env[name], name)
			}
			mounted := map[string]bool{}
			for _, mount := range pod.Containers[0].VolumeMounts {
				mounted[mount.Name] = true
			}
			script := testkit.Object[corev1.ConfigMap](t, recorder.One(t, testkit.ConfigMap, "persia-launch"))
			assert.Contains(t, script.Data["launch.py"], "import coordinator")
			assert.NotEmpty(t, script.Data["coordinator.py"])
			assert.True(t, *script.Immutable)
			for _, volume := range pod.Volumes {
				assert.True(t, mounted[volume.Name], volume.Name)
				if volume.ConfigMap != nil {
					assert.Equal(t, script.Name, volume.ConfigMap.Name)
				}
			}
		})
	}
}
