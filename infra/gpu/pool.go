package gpu

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/gcp"
)

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
