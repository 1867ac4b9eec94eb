package tests

import (
	"strings"
	"testing"

	"persia/internal/programtest"
	"persia/internal/pulumitest"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
		"Container-Optimized OS": {map[string]any{"installer": "cos-daemonset"},
			"INSTALLATION_DISABLED", "COS_CONTAINERD", false, "cos-nvidia-installer:fixed"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStack(t, "dev")
			programtest.Edit(t, configuration, "persia:nvidiaDriver", func(driver any) {
				for key, value := range test.driver {
					driver.(map[string]any)[key] = value
				}
			})
			recorder, err := programtest.Deploy(t, configuration)
			require.NoError(t, err)

			pool := recorder.One(t, pulumitest.NodePool, "persia-dev-gpu")
			assert.Equal(t, "nvidia-l4", pulumitest.At(t, pool, "nodeConfig.guestAccelerators[0].type"))
			assert.Equal(t, test.gkeInstalls, pulumitest.At(t, pool, "nodeConfig.guestAccelerators[0].gpuDriverInstallationConfig.gpuDriverVersion"))
			assert.Equal(t, test.imageType, pulumitest.At(t, pool, "nodeConfig.imageType"))
			assert.Equal(t, test.secureBoot, pulumitest.At(t, pool, "nodeConfig.shieldedInstanceConfig.enableSecureBoot"))

			if test.installer == "" {
				assert.Empty(t, recorder.Some(pulumitest.DaemonSet))
				return
			}
			set := pulumitest.Object[appsv1.DaemonSet](t, recorder.One(t, pulumitest.DaemonSet, "nvidia-driver"))
			assert.Equal(t, "kube-system", set.Namespace)
			pod := set.Spec.Template.Spec
			assert.Equal(t, test.installer, pod.InitContainers[0].Image)
			assert.True(t, *pod.InitContainers[0].SecurityContext.Privileged)
			assert.Equal(t, "system-node-critical", pod.PriorityClassName)
			expressions := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions
			assert.Equal(t, []corev1.NodeSelectorRequirement{
				{Key: "cloud.google.com/gke-accelerator", Operator: corev1.NodeSelectorOpExists},
				{Key: "cloud.google.com/gke-gpu-driver-version", Operator: corev1.NodeSelectorOpDoesNotExist},
			}, expressions)
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

func TestVolumes(t *testing.T) {
	cases := map[string]struct {
		stack, volume, claim, size string
		mode                       corev1.PersistentVolumeAccessMode
	}{
		"hostPath": {"dev", "checkpoints-vol", "checkpoints-pvc", "10Gi", corev1.ReadWriteOnce},
		"GCS FUSE": {"prod", "workspace", "workspace", "512Ti", corev1.ReadWriteMany},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			recorder := programtest.DeployStack(t, test.stack)
			volume := pulumitest.Object[corev1.PersistentVolume](t, recorder.One(t, pulumitest.Volume, test.volume))
			claim := pulumitest.Object[corev1.PersistentVolumeClaim](t, recorder.One(t, pulumitest.Claim, test.volume))

			assert.Equal(t, test.volume, volume.Name)
			assert.Equal(t, test.claim, claim.Name)
			assert.Equal(t, "persia", claim.Namespace)
			assert.Equal(t, test.size, volume.Spec.Capacity.Storage().String())
			assert.Equal(t, test.size, claim.Spec.Resources.Requests.Storage().String())
			assert.Equal(t, []corev1.PersistentVolumeAccessMode{test.mode}, volume.Spec.AccessModes)
			assert.Equal(t, volume.Spec.AccessModes, claim.Spec.AccessModes)
			assert.Equal(t, corev1.PersistentVolumeReclaimRetain, volume.Spec.PersistentVolumeReclaimPolicy)

			// What makes the two find each other, and nothing else.
			assert.Equal(t, test.volume, claim.Spec.VolumeName)
			require.NotNil(t, claim.Spec.StorageClassName)
			assert.Empty(t, *claim.Spec.StorageClassName)
			assert.Empty(t, volume.Spec.StorageClassName)
			assert.Equal(t, test.claim, volume.Spec.ClaimRef.Name)
			assert.Equal(t, "persia", volume.Spec.ClaimRef.Namespace)
		})
	}

	prod := programtest.DeployStack(t, "prod")
	volume := pulumitest.Object[corev1.PersistentVolume](t, prod.One(t, pulumitest.Volume, "workspace"))
	assert.Equal(t, "gcsfuse.csi.storage.gke.io", volume.Spec.CSI.Driver)
	assert.Equal(t, "my-project-persia-workspace", volume.Spec.CSI.VolumeHandle)
	grant := prod.One(t, pulumitest.BucketGrant, "gs://my-project-persia-workspace/criteo")
	assert.Equal(t, "roles/storage.objectUser", pulumitest.At(t, grant, "role"))
	assert.Equal(t, "principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/"+
		"my-project.svc.id.goog/subject/ns/persia/sa/"+programtest.AccountOf(t, prod, "criteo"), pulumitest.At(t, grant, "member"))
}

func TestNATS(t *testing.T) {
	prod := programtest.DeployStack(t, "prod")
	cluster := prod.One(t, pulumitest.NATSCluster, "persia-nats-service")
	for path, want := range map[string]any{
		"metadata.namespace": "nats-io",
		"metadata.name":      "persia-nats-service",
		`metadata.annotations["pulumi.com/waitFor"]`: `["jsonpath={.status.size}=60","jsonpath={.status.currentVersion}=2.10.22"]`,
		"spec.size":                        60.0,
		"spec.version":                     "2.10.22",
		"spec.serverImage":                 programtest.ProdCache + "library/nats",
		"spec.natsConfig.maxPayload":       52428800.0,
		"spec.pod.resources.requests.cpu":  "4",
		"spec.pod.resources.limits.memory": "32Gi",
		`spec.pod.nodeSelector["cloud.google.com/gke-nodepool"]`: "nats",
		"spec.pod.tolerations[0].value":                          "nats",
	} {
		assert.Equal(t, want, pulumitest.At(t, cluster, path), path)
	}
	assert.NotContains(t, cluster.Inputs["spec"].ObjectValue(), resource.PropertyKey("resources"),
		"where the operator does not look")

	deployment := pulumitest.Object[appsv1.Deployment](t, prod.One(t, pulumitest.Deployment, "nats-operator"))
	pod := deployment.Spec.Template.Spec
	assert.Equal(t, programtest.ProdCache+"natsio/nats-operator:0.8.3", pod.Containers[0].Image)
	assert.Equal(t, "nats-operator", pod.ServiceAccountName)
	assert.Equal(t, map[string]string{"cloud.google.com/gke-nodepool": "system"}, pod.NodeSelector)

	for _, role := range prod.All(t, "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole") {
		for _, rule := range pulumitest.Object[rbacv1.ClusterRole](t, role).Rules {
			assert.NotEmpty(t, rule.ResourceNames, "a right over the whole cluster is for named objects only")
		}
	}
	for _, token := range []string{"ClusterRole", "Role"} {
		for _, role := range prod.All(t, "kubernetes:rbac.authorization.k8s.io/v1:"+token) {
			for _, rule := range pulumitest.Object[rbacv1.Role](t, role).Rules {
				assert.NotContains(t, strings.Join(append(rule.Verbs, rule.Resources...), " "), "*")
			}
		}
	}
}
