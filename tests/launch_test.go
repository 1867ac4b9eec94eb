package tests

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestLaunch: where a replica that has finished is remembered, and that the script
// it starts with is there.
func TestLaunch(t *testing.T) {
	cases := map[string]struct {
		stack    string
		change   func(jobs any)
		set      string
		finished string
	}{
		"on the job's volume": {"prod", func(any) {}, "criteo-nn-worker",
			"/workspace/.persia/criteo/1/nn-worker-$(REPLICA_INDEX)"},
		"of another run": {"prod", func(jobs any) { jobs.([]any)[0].(map[string]any)["runId"] = "second" }, "criteo-dataloader",
			"/workspace/.persia/criteo/second/dataloader-$(REPLICA_INDEX)"},
		"in the pod, where the job can write to no volume": {"dev", func(jobs any) {
			jobs.([]any)[0].(map[string]any)["mounts"].([]any)[0].(map[string]any)["readOnly"] = true
		}, "adult-income-nn-worker", "/var/lib/persia/adult-income/1/nn-worker-$(REPLICA_INDEX)"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			configuration := readStack(t, test.stack)
			edit(t, configuration, "persia:jobs", test.change)
			recorder, err := deploy(t, configuration)
			require.NoError(t, err)
			pod := object[appsv1.StatefulSet](t, recorder.one(t, "kubernetes:apps/v1:StatefulSet", test.set)).Spec.Template.Spec

			env := pod.Containers[0].Env
			assert.Contains(t, env, corev1.EnvVar{Name: "PERSIA_FINISHED_FILE", Value: test.finished})
			mounted := map[string]bool{}
			for _, mount := range pod.Containers[0].VolumeMounts {
				mounted[mount.Name] = true
			}
			script := object[corev1.ConfigMap](t, recorder.one(t, "kubernetes:core/v1:ConfigMap", "persia-launch"))
			assert.Contains(t, script.Data["launch.sh"], "#!/bin/bash")
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
