package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestDriver: GKE's own installation or a DaemonSet, and never both.
func TestDriver(t *testing.T) {
	cases := map[string]struct {
		driver      map[string]any
		gkeInstalls string
		imageType   string
		secureBoot  bool
		installer   string
	}{
		"managed":        {map[string]any{"installer": "managed"}, "DEFAULT", "COS_CONTAINERD", true, ""},
		"managed latest": {map[string]any{"installer": "managed", "version": "LATEST"}, "LATEST", "COS_CONTAINERD", true, ""},
		"Ubuntu": {map[string]any{"installer": "ubuntu-daemonset", "version": "550.90.12"},
			"INSTALLATION_DISABLED", "UBUNTU_CONTAINERD", false, "gke-nvidia-installer:fixed"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStack(t, "Pulumi.dev.yaml")
			programtest.Edit(t, configuration, "persia:nvidiaDriver", func(driver any) {
				for key, value := range test.driver {
					driver.(map[string]any)[key] = value
				}
			})
			recorder, err := programtest.Deploy(t, configuration)
			require.NoError(t, err)

			pool := recorder.One(t, testkit.NodePool, "persia-dev-gpu")
			assert.Equal(t, "nvidia-l4", testkit.At(t, pool, "nodeConfig.guestAccelerators[0].type"))
			assert.Equal(t, test.gkeInstalls, testkit.At(t, pool, "nodeConfig.guestAccelerators[0].gpuDriverInstallationConfig.gpuDriverVersion"))
			assert.Equal(t, test.imageType, testkit.At(t, pool, "nodeConfig.imageType"))
			assert.Equal(t, test.secureBoot, testkit.At(t, pool, "nodeConfig.shieldedInstanceConfig.enableSecureBoot"))

			if test.installer == "" {
				assert.Empty(t, recorder.Some(testkit.DaemonSet))
				return
			}
			set := testkit.Object[appsv1.DaemonSet](t, recorder.One(t, testkit.DaemonSet, "nvidia-driver"))
			pod := set.Spec.Template.Spec
			assert.Equal(t, test.installer, pod.InitContainers[0].Image)
			mounted := map[string]bool{}
			for _, volume := range pod.Volumes {
				mounted[volume.Name] = true
			}
			for _, container := range pod.InitContainers {
				for _, mount := range container.VolumeMounts {
					assert.True(t, mounted[mount.Name], "%s mounts %s, which there is not", container.Name, mount.Name)
				}
			}
		})
	}
}
