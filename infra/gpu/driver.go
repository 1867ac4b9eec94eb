// Package gpu defines what makes a node pool a GPU pool, and how its nodes get the NVIDIA driver:
// from GKE, or from an installer DaemonSet. The two exclude each other, so one setting determines
// both the inputs of a pool and whether there is a DaemonSet.
package gpu

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/capacity"
	"persia/config"
	"persia/gcp"
	"persia/kube"
)

const installerName = "nvidia-driver-installer"

// NewDriver registers what installs the NVIDIA driver on the nodes of all GPU pools: a DaemonSet, or
// nothing if GKE does.
func NewDriver(r *kube.Registrar, name string, driver config.NVIDIADriver) []pulumi.CustomResource {
	objects := r.Component("persia:gpu:Driver", name)
	if driver.Installer == config.InstallerManaged {
		return nil
	}
	return kube.Needs(objects.Add(name, installer(driver), nil, kube.WorkloadTimeouts()))
}

// installer returns the DaemonSet that loads the driver on each GPU node. Its pods keep running, so
// that the installed driver is visible.
func installer(driver config.NVIDIADriver) *appsv1.DaemonSet {
	labels := map[string]string{"k8s-app": installerName}
	pod := ubuntuInstaller(driver.Version)
	pod.PriorityClassName = "system-node-critical"
	pod.Affinity = unmanagedGPUNodes()
	pod.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pod.Containers = []corev1.Container{{Name: "pause", Image: config.ImagePause.Reference()}}
	// Whoever takes over a privileged pod gets no token of kube-system with it.
	pod.AutomountServiceAccountToken = new(false)
	return &appsv1.DaemonSet{
		// GKE refuses the priority class system-node-critical elsewhere.
		ObjectMeta: kube.Meta(metav1.NamespaceSystem, installerName, labels),
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type: appsv1.RollingUpdateDaemonSetStrategyType,
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       pod,
			},
		},
	}
}

// unmanagedGPUNodes returns the nodes with a GPU whose driver GKE leaves alone, as NVIDIA's newest
// manifest selects them (GoogleCloudPlatform/container-engine-accelerators,
// nvidia-driver-installer/ubuntu/daemonset-preloaded-R580.yaml).
func unmanagedGPUNodes() *corev1.Affinity {
	gpu := corev1.NodeSelectorRequirement{Key: gcp.LabelAccelerator, Operator: corev1.NodeSelectorOpExists}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{
					gpu, {Key: gcp.LabelGPUDriver, Operator: corev1.NodeSelectorOpDoesNotExist},
				}},
				{MatchExpressions: []corev1.NodeSelectorRequirement{
					gpu, {Key: gcp.LabelGPUDriver, Operator: corev1.NodeSelectorOpIn, Values: []string{gcp.GPUDriverDisabled}},
				}},
			},
		},
	}}
}

// ubuntuInstaller loads the driver that is on the disk of GKE's Ubuntu image.
func ubuntuInstaller(version string) corev1.PodSpec {
	install := corev1.Container{
		Name:            installerName,
		Image:           config.ImageUbuntuInstaller.Reference(),
		Resources:       corev1.ResourceRequirements{Requests: kube.Requests(capacity.DriverInstaller)},
		SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "dev", MountPath: "/dev"},
			{Name: "boot", MountPath: "/boot"},
			{Name: "root-mount", MountPath: "/root"},
		},
	}
	if version != "" {
		install.Env = []corev1.EnvVar{{Name: "NVIDIA_DRIVER_VERSION", Value: version}}
	}
	return corev1.PodSpec{
		InitContainers: []corev1.Container{install},
		Volumes: []corev1.Volume{
			hostPath("dev", "/dev"),
			hostPath("boot", "/boot"),
			hostPath("root-mount", "/"),
		},
	}
}

func hostPath(name, path string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: path},
	}}
}

// Accelerators returns the GPUs of a node of a GPU pool, and whether GKE installs their driver.
func Accelerators(gpu config.GPU, driver config.NVIDIADriver) container.NodePoolNodeConfigGuestAcceleratorArray {
	return container.NodePoolNodeConfigGuestAcceleratorArray{container.NodePoolNodeConfigGuestAcceleratorArgs{
		Type:  pulumi.String(gpu.Type),
		Count: pulumi.Int(gpu.Count),
		GpuDriverInstallationConfig: container.NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs{
			GpuDriverVersion: pulumi.String(DriverVersion(driver)),
		},
	}}
}

// DriverVersion returns what a GPU pool asks of GKE. It is always given: GKE installs a driver by itself where
// it is not, and a DaemonSet would find no node to serve.
func DriverVersion(driver config.NVIDIADriver) string {
	if driver.Installer == config.InstallerManaged {
		return driver.Version
	}
	return gcp.DriverDisabled
}
