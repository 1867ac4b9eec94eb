package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/gcp"
)

// ubuntuDrivers are the versions that the installer for Ubuntu offers
// (GoogleCloudPlatform/container-engine-accelerators,
// nvidia-driver-installer/ubuntu).
var ubuntuDrivers = []string{"525.105.17", "535.161.07", "550.90.12", "570.124.06"}

func (v *validator) nvidiaDriver() {
	path, d := field.NewPath(nvidiaDriverKey), v.stack.NVIDIADriver
	if !oneOf(v, path.Child("installer"), d.Installer, InstallerManaged, InstallerUbuntu, InstallerCOS) {
		return
	}
	version := path.Child("version")
	switch d.Installer {
	case InstallerManaged:
		if oneOf(v, version, d.Version, "DEFAULT", "LATEST") && d.Version == "LATEST" {
			v.gpuImages(gcp.ImageCOS, "nvidiaDriver.version LATEST")
		}
	case InstallerUbuntu:
		if d.Version != "" {
			oneOf(v, version, d.Version, ubuntuDrivers...)
		}
		v.gpuImages(gcp.ImageUbuntu, "the installer ubuntu-daemonset")
		v.unsignedDriver()
		v.noPartitions()
	case InstallerCOS:
		if d.Version != "" {
			v.forbidden(version, "with the installer cos-daemonset the node image decides on the version; remove %q", d.Version)
		}
		v.gpuImages(gcp.ImageCOS, "the installer cos-daemonset")
		v.unsignedDriver()
	}
}

// gpuImages checks that all GPU pools have the image that the driver needs.
func (v *validator) gpuImages(image, reason string) {
	for i, p := range v.stack.NodePools {
		if p.GPU == nil || p.ImageType == image || (p.ImageType != gcp.ImageCOS && p.ImageType != gcp.ImageUbuntu) {
			continue
		}
		v.invalid(field.NewPath(nodePoolsKey).Index(i).Child("imageType"), p.ImageType,
			"must be %s on a GPU pool, as %s works on no other; write %s or choose another NVIDIA driver", image, reason, image)
	}
}

// unsignedDriver checks that the nodes of all GPU pools load a driver that nobody
// they trust has signed.
func (v *validator) unsignedDriver() {
	for i, p := range v.stack.NodePools {
		if p.GPU != nil && p.SecureBoot != nil && *p.SecureBoot {
			v.invalid(field.NewPath(nodePoolsKey).Index(i).Child("secureBoot"), true,
				"refuses the NVIDIA driver of the installer %s, which is not signed; remove it, or choose the installer %s", v.stack.NVIDIADriver.Installer, InstallerManaged)
		}
	}
}

// noPartitions refuses partitions where nothing makes them: NVIDIA's installer for
// Ubuntu leaves GPUs whole.
func (v *validator) noPartitions() {
	for i, p := range v.stack.NodePools {
		if p.GPU != nil && p.GPU.Partition != "" {
			v.invalid(field.NewPath(nodePoolsKey).Index(i).Child("gpu", "partition"), p.GPU.Partition,
				"is not made by the installer %s; remove it, or choose the installer %s or %s", InstallerUbuntu, InstallerManaged, InstallerCOS)
		}
	}
}
