package config

import "k8s.io/apimachinery/pkg/util/validation/field"

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
			v.gpuImages(imageCOS, "nvidiaDriver.version LATEST")
		}
	case InstallerUbuntu:
		if d.Version != "" {
			oneOf(v, version, d.Version, ubuntuDrivers...)
		}
		v.gpuImages(imageUbuntu, "the installer ubuntu-daemonset")
	case InstallerCOS:
		if d.Version != "" {
			v.forbidden(version, "with the installer cos-daemonset the node image decides on the version; remove %q", d.Version)
		}
		v.gpuImages(imageCOS, "the installer cos-daemonset")
	}
}

// gpuImages checks that all GPU pools have the image that the driver needs.
func (v *validator) gpuImages(image, reason string) {
	for i, p := range v.stack.NodePools {
		if p.GPU == nil || p.ImageType == image || (p.ImageType != imageCOS && p.ImageType != imageUbuntu) {
			continue
		}
		v.invalid(field.NewPath(nodePoolsKey).Index(i).Child("imageType"), p.ImageType,
			"must be %s on a GPU pool, as %s works on no other; write %s or choose another NVIDIA driver", image, reason, image)
	}
}
