package gpu

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/gcp"
)

// Accelerators returns the GPUs of a node of a GPU pool, and whether GKE installs their driver.
func Accelerators(gpu config.GPU, driver config.NVIDIADriver) container.NodePoolNodeConfigGuestAcceleratorArray {
	return container.NodePoolNodeConfigGuestAcceleratorArray{container.NodePoolNodeConfigGuestAcceleratorArgs{
		Type:  pulumi.String(gpu.Type),
		Count: pulumi.Int(gpu.Count),
		GpuDriverInstallationConfig: container.NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs{
			GpuDriverVersion: pulumi.String(driverVersion(driver)),
		},
	}}
}

// driverVersion is always given: GKE installs a driver by itself where it is
// not, and a DaemonSet would find no node to serve.
func driverVersion(driver config.NVIDIADriver) string {
	if driver.Installer == config.InstallerManaged {
		return driver.Version
	}
	return gcp.DriverDisabled
}

// Toleration tolerates the taint that GKE gives to every node with a GPU.
func Toleration() corev1.Toleration {
	return corev1.Toleration{
		Key:      gcp.TaintGPU,
		Operator: corev1.TolerationOpEqual,
		Value:    gcp.TaintGPUValue,
		Effect:   corev1.TaintEffectNoSchedule,
	}
}
