// Package gpu defines what makes a node pool a GPU pool, and how its nodes get the NVIDIA driver:
// from GKE, or from an installer DaemonSet. The two exclude each other, so one setting determines
// both the inputs of a pool and whether there is a DaemonSet.
package gpu

import (
	_ "embed"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/capacity"
	"persia/config"
	"persia/gcp"
	"persia/kube"
)

//go:embed installer.yaml
var installer string

// NewDriver registers what installs the NVIDIA driver on the nodes of all GPU pools: a DaemonSet, or
// nothing if GKE does.
func NewDriver(r *kube.Registrar, name string, driver config.NVIDIADriver) []pulumi.CustomResource {
	objects := r.Component("persia:gpu:Driver", name)
	if driver.Installer == config.InstallerManaged {
		return nil
	}
	daemonSet := kube.Manifest(installer, map[string]any{
		"Pause": config.ImagePause.Reference(), "Image": config.ImageUbuntuInstaller.Reference(),
		"Requests": kube.Requests(capacity.DriverInstaller), "Version": driver.Version,
	})[0]
	return kube.Needs(objects.Add(name, daemonSet, nil, kube.WorkloadTimeouts()))
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
